//! Generates the messages (prost) and typed calls of the service: a constant for each method, a
//! blocking client, a client for tokio, and `Listing` for the requests that have a cursor. A method
//! is a read if its `idempotency_level` says so.

use prost_build::{Config, Method, Service, ServiceGenerator};
use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = ["proto/tine/v1/store.proto", "proto/tine/v1/rpc.proto"];
    let mut config = Config::new();
    config.file_descriptor_set_path(
        PathBuf::from(std::env::var("OUT_DIR")?).join("descriptor_set.bin"),
    );
    let descriptors = config.load_fds(&protos, &["proto"])?;
    let messages = messages_of(&descriptors);
    config
        .service_generator(Box::new(Calls { messages }))
        .compile_fds(descriptors)?;
    Ok(())
}

/// Returns the messages by name. Names are unique.
fn messages_of(descriptors: &FileDescriptorSet) -> HashMap<String, DescriptorProto> {
    let messages = descriptors.file.iter().flat_map(|file| &file.message_type);
    messages
        .map(|message| (message.name().to_owned(), message.clone()))
        .collect()
}

struct Calls {
    messages: HashMap<String, DescriptorProto>,
}

impl ServiceGenerator for Calls {
    fn generate(&mut self, service: Service, out: &mut String) {
        generate(&service, &self.messages, out).expect("writing to a String cannot fail");
    }
}

/// A call that lists in pages.
struct Listing<'a> {
    method: &'a Method,
    /// The field of the reply with the items.
    items: &'a FieldDescriptorProto,
}

/// Returns the methods whose request has a `cursor` and whose reply has a `next_cursor`. The first
/// field of the reply has the items.
fn listings_of<'a>(
    service: &'a Service,
    messages: &'a HashMap<String, DescriptorProto>,
) -> Vec<Listing<'a>> {
    let has = |message: &str, name| messages[message].field.iter().any(|f| f.name() == name);
    let is_listing = |method: &&Method| {
        has(&method.input_type, "cursor") && has(&method.output_type, "next_cursor")
    };
    let listing = |method: &'a Method| {
        let items = &messages[&method.output_type].field[0];
        assert_eq!(items.label(), Label::Repeated, "{}", method.output_type);
        Listing { method, items }
    };
    let methods = service.methods.iter().filter(is_listing);
    methods.map(listing).collect()
}

fn generate(
    service: &Service,
    messages: &HashMap<String, DescriptorProto>,
    out: &mut String,
) -> std::fmt::Result {
    let listings = listings_of(service, messages);
    for listing in &listings {
        implement_listing(listing, out)?;
    }
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
    client(service, &listings, out, &Flavour::BLOCKING)?;
    writeln!(
        out,
        "/// Typed calls of `{name}` for tokio.\n#[cfg(feature = \"tokio\")]"
    )?;
    writeln!(out, "pub mod tokio {{")?;
    writeln!(out, "/// Typed calls of `{name}` for tokio.")?;
    client(service, &listings, out, &Flavour::TOKIO)?;
    writeln!(out, "}}")
}

fn implement_listing(listing: &Listing, out: &mut String) -> std::fmt::Result {
    let Listing { method, items } = listing;
    let item = items.type_name().rsplit('.').next().unwrap_or_default();
    writeln!(
        out,
        "impl crate::Listing for {request} {{
    type Page = {page};
    type Item = {item};
    const METHOD: crate::Method<Self, Self::Page> = methods::{constant};
    fn set_cursor(&mut self, cursor: String) {{ self.cursor = cursor; }}
    fn next_cursor(page: &Self::Page) -> &str {{ &page.next_cursor }}
    fn items(page: Self::Page) -> Vec<Self::Item> {{ page.{items} }}
}}
",
        request = method.input_type,
        page = method.output_type,
        constant = constant_of(method),
        items = items.name(),
    )
}

/// The differences between the two clients.
struct Flavour {
    channel: &'static str,
    pages: &'static str,
    watch: &'static str,
    scope: &'static str,
    is_async: bool,
}

impl Flavour {
    const BLOCKING: Self = Self {
        channel: "crate::Channel",
        pages: "crate::Pages",
        watch: "crate::Watch",
        scope: "",
        is_async: false,
    };
    const TOKIO: Self = Self {
        channel: "crate::tokio::Channel",
        pages: "crate::tokio::Pages",
        watch: "crate::tokio::Watch",
        scope: "super::",
        is_async: true,
    };
}

fn client(
    service: &Service,
    listings: &[Listing],
    out: &mut String,
    flavour: &Flavour,
) -> std::fmt::Result {
    let Flavour {
        channel,
        pages,
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
    for Listing { method, .. } in listings {
        let (name, input) = (&method.name, &method.input_type);
        writeln!(
            out,
            "    /// The pages of [`{name}`](Self::{name}), from the cursor to the end.\n    \
             pub fn {name}_pages(&self, request: impl Into<crate::Request<{scope}{input}>>) -> \
             {pages}<{scope}{input}> {{ self.channel.pages(request.into()) }}\n",
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

/// Returns the path of a message's type from a module inside the package.
fn inside(name: &str) -> String {
    format!("super::{name}")
}
