/* SPDX-License-Identifier: Apache-2.0 */
/* One call that handing on asks for (documents/handing.h), carried out. */
#ifndef FB_IO_DOCUMENT_STORE_CALL_H
#define FB_IO_DOCUMENT_STORE_CALL_H

#include "io/documents/handing.h"

/* FENCE, CONFIRM, GET or PUT; the answer was given to `handing`. Else than FB_OK: it comes to
 * nothing for now, `why` gets a sentence. FB_ERR_STORE_LOCKED: for good. */
fb_status fb_documents_call(const fb_documents_ops *ops, fb_documents *documents,
                            fb_handing *handing, const fb_handing_call *call, char *why,
                            size_t why_len);

#endif
