export * from "./gen/tine/v1/records_pb.js";
export * from "./gen/tine/v1/store_pb.js";
