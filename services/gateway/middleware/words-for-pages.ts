import type { RequestHandler } from 'express'
import { refuseInWords } from '../../http/errors.ts'

/** The paths of the dialects whose clients show the body of a refusal to a person as it is. */
const SHOWN = new Set(['/ui/chat', '/ag-ui'])

/** A page, which its browser says by `Origin`, gets the message of a refusal alone, unless it asks for JSON (D31.1). */
export function wordsForPages(basePath: string): RequestHandler {
  return (req, res, next) => {
    const isOfPage = req.headers.origin !== undefined && !/\bjson\b/i.test(req.headers.accept ?? '')
    if (isOfPage && req.path.startsWith(basePath) && SHOWN.has(req.path.slice(basePath.length))) refuseInWords(res)
    next()
  }
}
