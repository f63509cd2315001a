import { hash } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import { notFound } from '../../shared/kernel/errors.ts'
import type { ConsoleFile, ConsoleFiles } from './console-files.ts'

/** Reads the console, once. `undefined` when it has not been built. */
export type ReadConsole = () => Promise<ConsoleFiles | undefined>

/** Answers from the console's files, which no start reads: they are 330 files and 5 MiB. */
export const withConsole =
  (
    read: ReadConsole,
    answer: (files: ConsoleFiles) => RequestHandler,
    otherwise: RequestHandler = passOn,
  ): RequestHandler =>
  async (req, res, next) => {
    const files = await read()
    await (files ? answer(files) : otherwise)(req, res, next)
  }

export const passOn: RequestHandler = (_req, _res, next) => next('route')

/** Sends a built page, which may connect to this server and to `origins`. */
export function sendPage(page: ConsoleFile, origins: readonly string[] = []): RequestHandler {
  const headers = pageHeaders(page, origins)
  return (req, res) => {
    res.set(headers).set('Cache-Control', 'no-cache')
    sendFile(page, req, res)
  }
}

/** The page may use only its own scripts and styles, and cannot make scripts from text: `trusted-types 'none'` refuses every assignment of HTML. */
function pageHeaders(page: ConsoleFile, origins: readonly string[]): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${["'self'", ...styleHashesOf(page)].join(' ')}`,
    "img-src 'self' data:",
    `connect-src ${["'self'", ...origins].join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]
  return {
    'Content-Security-Policy': policy.join('; '),
    ...GUARDS,
  }
}

/** The headers of every page that runs scripts. */
export const GUARDS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
} as const

/** The sources of `style-src` that allow the `<style>` elements of the page. */
function styleHashesOf({ bodies }: ConsoleFile): string[] {
  const styles = bodies.identity.toString().matchAll(/<style>(.*?)<\/style>/gs)
  return Array.from(styles, ([, text = '']) => `'sha256-${hash('sha256', text, 'base64')}'`)
}

/** The name of an asset holds a hash of its content, so that a browser never has to ask for it again. */
export const sendAsset =
  ({ assets }: ConsoleFiles): RequestHandler =>
  (req, res) => {
    const file = assets.get(`assets/${String(req.params['file'])}`)
    if (!file) throw notFound('the console has no such file: load the page again')
    res.set('Cache-Control', 'public, max-age=31536000, immutable')
    sendFile(file, req, res)
  }

function sendFile({ type, etag, bodies }: ConsoleFile, req: Request, res: Response): void {
  res.vary('Accept-Encoding').set({ 'Content-Type': type, ETag: etag })
  if (req.headers['if-none-match'] === etag) {
    res.status(304).end()
    return
  }
  const accepted = req.acceptsEncodings('br', 'gzip', 'identity')
  const encoding = accepted === 'br' || accepted === 'gzip' ? accepted : 'identity'
  if (encoding !== 'identity') res.set('Content-Encoding', encoding)
  res.send(bodies[encoding])
}
