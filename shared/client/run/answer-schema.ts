import type { Schema } from '../api.ts'

/** A schema of zod 4, or of another library whose schemas can be converted to JSON Schema. */
export type StandardSchema<T> = {
  readonly '~standard': { readonly types?: { readonly output: T } | undefined }
  toJSONSchema(): object
}

/** A request whose answer is a value that fits a schema. */
export type Typed<Request, T> = Omit<Request, 'response_schema'> & { schema: StandardSchema<T> | Schema<'JsonSchema'> }

/** The request in the form in which it is sent. */
export const asSent = ({ schema, ...body }: { schema?: { toJSONSchema?(): object } }): object => ({
  response_schema: schema?.toJSONSchema?.() ?? schema,
  ...body,
})
