import type { components } from './openapi.d.ts'

/** The name of a schema of `openapi.yaml`. */
export type ApiTypeName = keyof components['schemas']

/** The type that a schema of `openapi.yaml` describes. */
export type ApiType<Name extends ApiTypeName> = components['schemas'][Name]
