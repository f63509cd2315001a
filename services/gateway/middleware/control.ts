import type { Request } from 'express'

/** The paths behind the base path, by method: what ends work or answers it, and the stream that makes polling needless. */
const CONTROL: Readonly<Record<string, RegExp>> = {
  GET: /^\/events$/,
  POST: /^\/(sessions\/[^/]+\/permissions\/[^/]+|plans\/[^/]+\/cancel|openai\/v1\/responses\/[^/]+\/cancel)$/,
  DELETE: /^\/((runs|sessions)\/[^/]+|ui\/chat\/[^/]+\/stream)$/,
}

/**
 * Whether a request is a control call. They are counted apart, against limits of the same size, so that a client's polling never keeps
 * it from answering a permission request or ending a run (D17a).
 */
export function isControl({ method, path }: Pick<Request, 'method' | 'path'>, basePath: string): boolean {
  return path.startsWith(basePath) && (CONTROL[method]?.test(path.slice(basePath.length)) ?? false)
}
