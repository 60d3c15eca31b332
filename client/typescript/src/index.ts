export { closeOnBreak } from "./close_on_break.js";
export { isReason, reason } from "./errors.js";
export { pages } from "./pages.js";
export type { ReadyOptions } from "./ready.js";
export { Reason } from "./reason.js";
export { createTransport, type TineTransport, type TransportOptions } from "./transport.js";
