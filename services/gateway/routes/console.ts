import type { Request, RequestHandler, Response } from 'express'
import { notFound } from '../../../shared/kernel/errors.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ConsoleFile, ConsoleFiles } from '../console-files.ts'

/** How a person gets a token: not at all, by pasting one, or at the issuer. */
export type ConsoleSignIn =
  | { kind: 'none' | 'token' }
  | { kind: 'oidc'; issuer: string; client_id: string; audience: string; scope: string }

export type ConsoleSettings = {
  files: ConsoleFiles
  signIn: ConsoleSignIn
  /** Where the page may connect to beside this server: the issuer's origins. */
  origins: readonly string[]
  /** Whether `/` leads a browser here. */
  isHome: boolean
}

type Deps = ConsoleSettings & { basePath: string }

/** The console's pages (D29), which need no token: everything that they show comes from the API with the caller's own. */
export function consoleRoutes(deps: Deps): RouteTable {
  const { files, origins, signIn, basePath } = deps
  const headers = pageHeaders(origins)
  const index: RequestHandler = (req, res) => {
    res.set(headers).set('Cache-Control', 'no-cache')
    sendFile(files.index, req, res)
  }
  const config = { base_path: basePath, sign_in: signIn }
  return {
    ...(deps.isHome && { '/': { get: leadBrowsersTo('/console/'), otherwise: passOn } }),
    '/console/config.json': { get: (_req, res) => void res.json(config) },
    '/console/assets/:file': { get: asset(files) },
    '/console{/*page}': { get: index },
  }
}

/** The page runs its own scripts only, and can make none of a text: `trusted-types 'none'` refuses every assignment of HTML. */
function pageHeaders(origins: readonly string[]): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
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
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Referrer-Policy': 'no-referrer',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  }
}

/** The name of an asset holds a hash of its content, so that a browser never has to ask for it again. */
const asset =
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

/** Other clients get the answer that they had. */
const leadBrowsersTo =
  (path: string): RequestHandler =>
  (req, res, next) => {
    if (req.accepts(['json', 'html']) !== 'html') return next('route')
    res.redirect(path)
  }

const passOn: RequestHandler = (_req, _res, next) => next('route')
