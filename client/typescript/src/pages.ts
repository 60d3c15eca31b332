// Iterates over the pages of a listing.

import type { CallOptions } from "@connectrpc/connect";

/**
 * Yields all pages of a listing, from the cursor of `request` to the end:
 *
 *     for await (const { sessions } of pages(tine.listSessions, { limit: 100 })) {
 *       for (const session of sessions) console.log(session.id);
 *     }
 *
 * Each page is one call, which is made when the page is requested; the options apply to each call.
 * A page may be empty. If a call fails, the iterator throws the error and ends.
 */
export async function* pages<
  Request extends { cursor?: string },
  Page extends { readonly nextCursor: string },
>(
  call: (request: Request, options?: CallOptions) => Promise<Page>,
  request: Request,
  options?: CallOptions,
): AsyncGenerator<Page, void, undefined> {
  let cursor = request.cursor;
  do {
    const page = await call(cursor ? { ...request, cursor } : request, options);
    yield page;
    cursor = page.nextCursor;
  } while (cursor !== "");
}
