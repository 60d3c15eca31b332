//! Makes the messages (prost) and, of the service, typed calls: a constant for each method, a
//! blocking client and one for tokio. What is a read comes from `idempotency_level`.

use prost_build::{Config, Method, Service, ServiceGenerator};
use std::fmt::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = PathBuf::from(std::env::var("OUT_DIR")?).join("descriptor_set.bin");
    Config::new()
        .service_generator(Box::new(Calls))
        .file_descriptor_set_path(descriptors)
        .compile_protos(
            &["proto/tine/v1/store.proto", "proto/tine/v1/rpc.proto"],
            &["proto"],
        )?;
    Ok(())
}

struct Calls;

impl ServiceGenerator for Calls {
    fn generate(&mut self, service: Service, out: &mut String) {
        generate(&service, out).expect("a String takes all that is written");
    }
}

fn generate(service: &Service, out: &mut String) -> std::fmt::Result {
    let name = &service.name;
    writeln!(
        out,
        "/// The methods of `{name}`, for [`crate::Channel::call`]."
    )?;
    writeln!(out, "pub mod methods {{")?;
    for method in &service.methods {
        let (constant, input, output) = (
            constant_of(method),
            inside(&method.input_type),
            inside(&method.output_type),
        );
        writeln!(
            out,
            "    /// `{}`\n    pub const {constant}: crate::Method<{input}, {output}> = \
             crate::Method::new(\"/{}.{}/{}\", {});",
            method.proto_name,
            service.package,
            service.proto_name,
            method.proto_name,
            is_read(method),
        )?;
    }
    writeln!(out, "}}\n")?;

    writeln!(out, "/// Typed calls of `{name}` that block.")?;
    client(service, out, &Flavour::BLOCKING)?;
    writeln!(
        out,
        "/// Typed calls of `{name}` for tokio.\n#[cfg(feature = \"tokio\")]"
    )?;
    writeln!(out, "pub mod tokio {{")?;
    writeln!(out, "/// Typed calls of `{name}` for tokio.")?;
    client(service, out, &Flavour::TOKIO)?;
    writeln!(out, "}}")
}

/// What differs between the two clients.
struct Flavour {
    channel: &'static str,
    watch: &'static str,
    scope: &'static str,
    is_async: bool,
}

impl Flavour {
    const BLOCKING: Self = Self {
        channel: "crate::Channel",
        watch: "crate::Watch",
        scope: "",
        is_async: false,
    };
    const TOKIO: Self = Self {
        channel: "crate::tokio::Channel",
        watch: "crate::tokio::Watch",
        scope: "super::",
        is_async: true,
    };
}

fn client(service: &Service, out: &mut String, flavour: &Flavour) -> std::fmt::Result {
    let Flavour {
        channel,
        watch,
        scope,
        is_async,
    } = flavour;
    let (keyword, ending) = if *is_async {
        ("async ", ".await")
    } else {
        ("", "")
    };
    let name = format!("{}Client", service.name);
    writeln!(
        out,
        "#[derive(Clone, Debug)]\npub struct {name} {{ channel: {channel} }}\n"
    )?;
    writeln!(out, "impl {name} {{")?;
    writeln!(
        out,
        "    /// Calls through `channel`; clones share its connection.\n    \
             pub fn new(channel: {channel}) -> Self {{ Self {{ channel }} }}\n"
    )?;
    writeln!(
        out,
        "    /// The channel that it calls through.\n    \
             pub fn channel(&self) -> &{channel} {{ &self.channel }}\n"
    )?;
    for method in &service.methods {
        assert!(
            !method.client_streaming,
            "{}: no channel streams requests",
            method.name
        );
        for line in &method.comments.leading {
            writeln!(
                out,
                "    ///{}",
                line.replace('[', "\\[").replace(']', "\\]")
            )?;
        }
        let input = &method.input_type;
        let output = if method.server_streaming {
            *watch
        } else {
            &*format!("{scope}{}", method.output_type)
        };
        let body = if method.server_streaming {
            assert_eq!(
                method.proto_name, "WatchEvents",
                "the only stream that a channel makes"
            );
            format!("{watch}::begin(&self.channel, request.into())")
        } else {
            format!(
                "self.channel.call(&{scope}methods::{}, request.into())",
                constant_of(method)
            )
        };
        writeln!(
            out,
            "    pub {keyword}fn {}(&self, request: impl Into<crate::Request<{scope}{input}>>) -> \
             Result<{output}, crate::Error> {{ {body}{ending} }}\n",
            method.name,
        )?;
    }
    writeln!(out, "}}\n")
}

fn is_read(method: &Method) -> bool {
    use prost_types::method_options::IdempotencyLevel::NoSideEffects;
    method.options.idempotency_level() == NoSideEffects
}

fn constant_of(method: &Method) -> String {
    method.name.to_uppercase()
}

/// A message's type as a module inside the package sees it.
fn inside(name: &str) -> String {
    format!("super::{name}")
}
