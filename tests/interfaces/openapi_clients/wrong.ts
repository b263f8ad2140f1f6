/** Mistakes in the use of the client: the types refuse each marked line, and no other. */

import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: "http://localhost:8710" });
await client.POST("/v1/serach", { body: { query: "tea" } }); // wrong path
await client.GET("/v1/store", { params: { query: { content: "tea" } } }); // wrong method
await client.POST("/v1/search", { body: { question: "tea" } }); // wrong name of an argument
await client.POST("/v1/store", { body: { content: "tea", tags: "drinks" } }); // wrong type
await client.POST("/v1/search", { body: {} }); // an argument is missing
await client.POST("/v1/search", { body: { query: "tea", mode: "exact" } }); // wrong choice
await client.GET("/v1/list", { params: { query: { limits: 1 } } }); // wrong name in a query
const { data, error } = await client.POST("/v1/search", { body: { query: "tea" } });
console.log(data.results); // without a look whether there was an error
console.log(data?.results[0].contents); // wrong name in an answer
console.log(data?.results[0].score.trim()); // wrong type in an answer
console.log(data?.results[0].similarity.toFixed()); // a field that an answer may leave out
console.log(error?.expectation); // wrong name in an error
