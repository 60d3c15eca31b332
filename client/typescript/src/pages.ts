// The pages of a listing, one after the other.

import type { CallOptions } from "@connectrpc/connect";

/**
 * All pages of a listing, from the cursor of `request` to the end:
 *
 *     for await (const { sessions } of pages(tine.listSessions, { limit: 100 })) {
 *       for (const session of sessions) console.log(session.id);
 *     }
 *
 * Each page is one call, made when it is asked for; the options are those of each call. A page may be
 * empty. When a call fails the loop throws its error and ends.
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
