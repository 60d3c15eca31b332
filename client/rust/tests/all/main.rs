//! The client against a real `tined`, and against peers that behave badly.

mod call;
mod examples;
mod support;
mod watch;
