/* SPDX-License-Identifier: Apache-2.0 */
/* Names that others read: of the collection of documents that a collection of records becomes. */
#ifndef FB_DOCUMENTS_NAMES_H
#define FB_DOCUMENTS_NAMES_H

#include "protocol/base/types.h"

/* With its end. A database's own names and indexes leave room for about so much. */
#define FB_DOCUMENTS_COLLECTION_MAX 180u

/* The space's UUID, a dot, and the collection's name with %XX for each byte that is not a letter of
 * ASCII, a digit, "-" or "_"; where that is too long, its beginning, "%~" and 32 hex digits of the
 * area's id. Two collections never have one name. */
void fb_documents_collection(fb_id space, fb_id area, fb_span name,
                             char out[FB_DOCUMENTS_COLLECTION_MAX]);

#endif
