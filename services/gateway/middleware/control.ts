import type { Request } from 'express'

/** The paths behind the base path, by method: what ends work or answers it, and the stream that makes polling needless. */
const CONTROL: Readonly<Record<string, RegExp>> = {
  GET: /^\/events$/,
  POST: /^\/(sessions\/[^/]+\/permissions\/[^/]+|runs\/[^/]+\/tool-calls\/[^/]+|plans\/[^/]+\/cancel|openai\/v1\/responses\/[^/]+\/cancel)$/,
  DELETE: /^\/((runs|sessions)\/[^/]+|ui\/chat\/[^/]+\/stream)$/,
}

/** The paths of dialects whose body is either a prompt or answers to permission requests; in A2A also a cancel. */
const MIXED = /^\/(ui\/chat|ag-ui|openai\/v1\/responses|a2a)$/

/** The kind of a request, as far as its path tells. */
export type RequestKind = 'ordinary' | 'control' | 'mixed'

/**
 * Control calls are counted apart, against limits of the same size, so that a client's polling never keeps it from answering a permission
 * request or ending a run (D17a).
 */
export function kindOf({ method, path }: Pick<Request, 'method' | 'path'>, basePath: string): RequestKind {
  if (!path.startsWith(basePath)) return 'ordinary'
  const rest = path.slice(basePath.length)
  if (CONTROL[method]?.test(rest)) return 'control'
  return method === 'POST' && MIXED.test(rest) ? 'mixed' : 'ordinary'
}
