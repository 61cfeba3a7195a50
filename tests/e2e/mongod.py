# SPDX-License-Identifier: Apache-2.0
"""A MongoDB server of the tests' own, on loopback, and what is done to it.

FABERIO_MONGODB names another deployment (mongodb://HOST/...): then tests that need no hand on the
server run against that one, with a database of their own."""
import os
import signal
import socket
import subprocess
from pathlib import Path

import pymongo
import pymongo.errors

from node import HANGS_S, eventually

PROGRAM = Path(os.environ.get("FABERIO_MONGOD", "build/mongod/fiftyone/db/bin/mongod"))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Mongod:
    """One server: a replica set of one member, or standalone."""

    def __init__(self, directory, replica_set="rs0", initiate=True):
        self.directory = Path(directory)
        self.directory.mkdir()
        self.initiate = initiate  # ... itself; else it is a member of a set that is begun later
        self.port = free_port()
        self.replica_set = replica_set
        self.process = None

    def uri(self, database, port=None):
        more = f"?replicaSet={self.replica_set}" if self.replica_set and port is None else ""
        if port is not None:
            more = "?directConnection=true"
        return f"mongodb://127.0.0.1:{port or self.port}/{database}{more}"

    def start(self):
        replica_set = ["--replSet", self.replica_set, "--oplogSize", "50"] if self.replica_set else []
        self.log = open(self.directory / "log", "ab")
        self.process = subprocess.Popen(
            [PROGRAM, "--dbpath", self.directory, "--port", str(self.port), "--bind_ip", "127.0.0.1",
             "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", "--wiredTigerEngineConfigString",
             "log=(prealloc=false,file_max=8MB)", "--setParameter",
             "diagnosticDataCollectionEnabled=false", "--setParameter", "enableTestCommands=1",
             *replica_set], stdout=self.log, stderr=subprocess.STDOUT)
        self.client = pymongo.MongoClient("127.0.0.1", self.port, directConnection=True,
                                          serverSelectionTimeoutMS=HANGS_S * 1000,
                                          uuidRepresentation="standard")
        self.client.admin.command("ping")
        if not self.initiate:
            return self
        if self.replica_set:
            try:
                self.client.admin.command(
                    "replSetInitiate", {"_id": self.replica_set, "members": [
                        {"_id": 0, "host": f"127.0.0.1:{self.port}"}]})
            except pymongo.errors.OperationFailure as failure:
                assert failure.code == 23, failure
        eventually(lambda: self.client.admin.command("hello"),
                   lambda hello: hello.get("isWritablePrimary"))
        return self

    def kill(self):
        self._end(signal.SIGKILL)

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def _end(self, with_signal):
        process, self.process = self.process, None
        # First, as it says goodbye to a server that it then would look for.
        self.client.close()
        process.send_signal(with_signal)
        process.wait(timeout=HANGS_S)
        self.log.close()

    def fail(self, mode, **data):
        """The server's own fail point for commands."""
        self.client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)

    def close(self):
        if self.process is not None:
            self.kill()


class ReplicaSet:
    """Three servers of one set."""

    def __init__(self, directory, name="rs3"):
        self.name = name
        self.members = [Mongod(Path(directory) / f"{name}-{n}", name, initiate=False) for n in range(3)]

    def uri(self, database):
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"mongodb://{hosts}/{database}?replicaSet={self.name}"

    def start(self):
        for member in self.members:
            member.start()
        self.members[0].client.admin.command("replSetInitiate", {
            "_id": self.name, "settings": {"electionTimeoutMillis": 1000}, "members": [
                {"_id": n, "host": f"127.0.0.1:{member.port}"} for n, member in enumerate(self.members)]})
        self.client = pymongo.MongoClient(self.uri("admin"), serverSelectionTimeoutMS=HANGS_S * 1000,
                                          uuidRepresentation="standard")
        eventually(lambda: self.client.admin.command("hello"), lambda hello: hello.get("isWritablePrimary"))
        return self

    def primary(self):
        """The member that takes writes, once one does."""
        port = self.client.admin.command("hello")["me"].rsplit(":", 1)[1]
        return next(member for member in self.members if member.port == int(port))

    def close(self):
        self.client.close()
        for member in self.members:
            member.close()


class Deployment:
    """Somebody else's, which FABERIO_MONGODB names: tests get a database of their own in it."""

    def __init__(self, address):
        self.address = address
        self.client = pymongo.MongoClient(address, serverSelectionTimeoutMS=HANGS_S * 1000,
                                          uuidRepresentation="standard")
        self.suffix = os.urandom(4).hex()
        self.made = set()

    def database(self, name):
        self.made.add(f"faberio-test-{name}-{self.suffix}")
        return f"faberio-test-{name}-{self.suffix}"

    def uri(self, database):
        hosts, _, options = self.address.partition("?")
        hosts = "/".join(hosts.split("/")[:3])
        return f"{hosts}/{database}" + (f"?{options}" if options else "")

    def close(self):
        for name in self.made:
            self.client.drop_database(name)
        self.client.close()


def documents(client, database, collection):
    """All documents of a collection of records, by id; not the marks of removed ones."""
    found = {}
    for name in client[database].list_collection_names():
        if name.endswith("." + collection):
            for document in client[database][name].find({"_faberio.g": {"$exists": False}}):
                found[str(document["_id"])] = document
    return found


def collection(client, database, name):
    """The collection that a collection of records is."""
    return next(client[database][full] for full in client[database].list_collection_names()
                if full.endswith("." + name))


def shown(client, database, name):
    """What documents show to others, by id."""
    return {record: {k: v for k, v in document.items() if k not in ("_id", "_faberio")}
            for record, document in documents(client, database, name).items()}
