/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a Noise session over a blocking socket, through protocol/link/noise.c and record.c,
 * for tests/e2e/test_noise_interop.py.
 *
 *     noise_peer listen PROLOGUE-HEX NONCE MESSAGES      prints its port, then accepts once
 *     noise_peer connect:PORT PROLOGUE-HEX NONCE MESSAGES
 *
 * Every message is a u16 length and bytes. After the handshake both nonces are set to NONCE; then
 * so many transport messages are answered (listen) or sent and awaited (connect), each with its
 * bytes reversed. Prints the handshake hash and the peer's static key at the end; exit 0 when all
 * went well. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "protocol/link/record.h"

static void fail(const char *what)
{
    fprintf(stderr, "noise_peer: %s\n", what);
    exit(1);
}

static void read_all(int fd, uint8_t *out, size_t len)
{
    while (len != 0) {
        ssize_t n = read(fd, out, len);
        if (n <= 0) fail("the socket ended");
        out += n;
        len -= (size_t)n;
    }
}

static void write_all(int fd, const uint8_t *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = write(fd, bytes, len);
        if (n <= 0) fail("the socket does not take more");
        bytes += n;
        len -= (size_t)n;
    }
}

static size_t read_message(int fd, uint8_t *out)
{
    uint8_t length[2];
    read_all(fd, length, sizeof length);
    size_t len = (size_t)length[0] << 8 | length[1];
    read_all(fd, out, len);
    return len;
}

static int open_socket(const char *mode)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    if (strncmp(mode, "connect:", 8) == 0) {
        address.sin_port = htons((uint16_t)strtoul(mode + 8, NULL, 10));
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
        return fd;
    }
    socklen_t len = sizeof address;
    if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 1) != 0) fail("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0) fail("getsockname");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    int accepted = accept(fd, NULL, NULL);
    if (accepted < 0) fail("accept");
    close(fd);
    return accepted;
}

static void print_hex(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) printf("%02x", bytes[i]);
    printf("\n");
}

static void reverse(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len / 2; i++) {
        uint8_t c = bytes[i];
        bytes[i] = bytes[len - 1 - i];
        bytes[len - 1 - i] = c;
    }
}

static uint8_t wire[FB_NOISE_MESSAGE_MAX + 2];

static void send_message(int fd, fb_cipher *cipher, const fb_provider *provider, size_t len)
{
    if (fb_transport_seal(cipher, provider, wire, len) != FB_OK) fail("seal");
    write_all(fd, wire, FB_RECORD_LENGTH + len + FB_NOISE_TAG);
}

static size_t receive_message(int fd, fb_cipher *cipher, const fb_provider *provider)
{
    uint8_t *bytes = wire + FB_RECORD_LENGTH;
    size_t len = read_message(fd, bytes);
    if (fb_transport_open(cipher, provider, fb_span_of(bytes, len), bytes) != FB_OK) fail("open");
    return len - FB_NOISE_TAG;
}

static void handshake(int fd, fb_handshake *hs, const fb_provider *provider)
{
    while (!fb_handshake_done(hs)) {
        if (fb_handshake_writes(hs)) {
            fb_writer out = fb_writer_of(wire + 2, sizeof wire - 2);
            if (fb_handshake_write(hs, provider, fb_span_of(NULL, 0), &out) != FB_OK) fail("write");
            fb_store_be(wire, out.at, 2);
            write_all(fd, wire, 2 + out.at);
        } else {
            size_t len = read_message(fd, wire);
            fb_writer payload = fb_writer_of(wire, 0);
            if (fb_handshake_read(hs, provider, fb_span_of(wire, len), &payload) != FB_OK) {
                fail("a handshake message does not authenticate");
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) fail("usage: noise_peer listen|connect:PORT PROLOGUE-HEX NONCE MESSAGES");
    uint8_t prologue[256];
    size_t prologue_len = strlen(argv[2]) / 2;
    if (prologue_len > sizeof prologue ||
        !fb_hex_parse(fb_span_text(argv[2]), prologue, prologue_len))
        fail("prologue");
    uint64_t nonce = strtoull(argv[3], NULL, 10);
    unsigned long messages = strtoul(argv[4], NULL, 10);

    fb_sodium *sodium;
    fb_b32 secret;
    fb_key_handle key;
    if (fb_sodium_create(4, &sodium) != FB_OK) fail("libsodium");
    const fb_provider *provider = fb_sodium_provider(sodium);
    if (provider->secret(provider->user, secret.b, sizeof secret.b) != FB_OK) fail("secret");
    if (fb_sodium_add_dh(sodium, &secret, &key) != FB_OK) fail("key");

    int fd = open_socket(argv[1]);
    bool initiator = strncmp(argv[1], "connect:", 8) == 0;
    fb_handshake hs;
    fb_cipher out, in;
    fb_handshake_begin(&hs, provider, initiator, key, fb_span_of(prologue, prologue_len));
    handshake(fd, &hs, provider);
    fb_handshake_split(&hs, provider, &out, &in);
    out.nonce = in.nonce = nonce;

    for (unsigned long i = 0; i < messages; i++) {
        if (initiator) {
            size_t len = 1 + i * 997 % FB_RECORD_BYTES_MAX;
            for (size_t b = 0; b < len; b++) wire[FB_RECORD_LENGTH + b] = (uint8_t)(b * 31 + i);
            send_message(fd, &out, provider, len);
            if (receive_message(fd, &in, provider) != len) fail("an answer of another length");
            for (size_t b = 0; b < len; b++) {
                uint8_t want = (uint8_t)((len - 1 - b) * 31 + i);
                if (wire[FB_RECORD_LENGTH + b] != want) fail("an answer of other bytes");
            }
        } else {
            size_t len = receive_message(fd, &in, provider);
            reverse(wire + FB_RECORD_LENGTH, len);
            send_message(fd, &out, provider, len);
        }
    }
    print_hex(hs.h, sizeof hs.h);
    print_hex(hs.remote_static.b, sizeof hs.remote_static.b);
    fb_handshake_wipe(&hs, provider);
    fb_sodium_destroy(sodium);
    close(fd);
    return 0;
}
