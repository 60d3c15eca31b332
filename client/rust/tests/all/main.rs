//! Tests of the client with a real `tined`, and with peers that behave badly.

mod call;
mod examples;
mod fuzz;
mod hostile;
mod killed;
mod pages;
mod readme;
mod ready;
mod refused;
mod start;
mod support;
mod testing;
mod tokio_call;
mod tokio_watch;
mod turns;
mod vectors;
mod watch;
