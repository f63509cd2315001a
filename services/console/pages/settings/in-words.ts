import { ApiError } from '../../../../shared/client/errors.ts'

/** The labels of a form's fields, by the names that the API gives them. */
export type Labels = Readonly<Record<string, string>>

/**
 * Explains why the server refuses the values of a form: field names are replaced by the labels that the reader sees, and API requests are
 * left out, because they do not help there.
 */
export const inWords =
  (labels: Labels) =>
  (cause: unknown): string => {
    const said = cause instanceof Error ? cause.message : String(cause)
    if (!(cause instanceof ApiError)) return said
    const text = said.replaceAll(REQUEST, '')
    const name = cause.param?.split('/').findLast((part) => Object.hasOwn(labels, part))
    const label = name === undefined ? undefined : labels[name]
    if (name === undefined || label === undefined) return text
    const [, rest] = new RegExp(String.raw`^(?:[\w./]*\b)?${name}(?!\w)[ .:]*(.*)$`, 's').exec(text) ?? []
    return rest === undefined ? `${label}: ${text}` : `${label} ${rest}`
  }

/** Such as `: create it with PUT /config/instances/{name}`. */
const REQUEST = /[:;,]? [^:;,]*\b(?:GET|PUT|POST|PATCH|DELETE) \/[^\s,;]*/g
