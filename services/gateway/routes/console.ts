import type { ErrorRequestHandler, RequestHandler } from 'express'
import { notFound } from '../../../shared/kernel/errors.ts'
import { passOn, type ReadConsole, sendAsset, sendPage, withConsole } from '../../http/console-pages.ts'
import type { RouteTable } from '../../http/routes.ts'

/** How a person gets a token: none is needed, the person pastes one, or the issuer gives one. */
export type ConsoleSignIn =
  | { kind: 'none' | 'token' }
  | { kind: 'oidc'; issuer: string; client_id: string; audience: string; scope: string }

export type ConsoleSettings = {
  files: ReadConsole
  signIn: ConsoleSignIn
  /** The origins that the page may connect to beside this server: the issuer's. */
  origins: readonly string[]
  /** Whether `/` leads to the console. */
  isHome: boolean
}

type Deps = ConsoleSettings & { basePath: string }

/** The console's pages (D29), which need no token: all data that they show comes from the API, with the caller's own token. */
export function consoleRoutes(deps: Deps): RouteTable {
  const { files, origins, signIn, basePath } = deps
  const config = { base_path: basePath, sign_in: signIn }
  return {
    ...(deps.isHome && { '/': { get: leadToConsole(basePath), otherwise: passOn } }),
    '/console/config.json': { get: (_req, res) => void res.json(config) },
    '/console/assets/:file': { get: withConsole(files, sendAsset) },
    '/console{/*page}': { get: sendIndex({ files, origins }) },
  }
}

const sendIndex = ({ files, origins }: Pick<ConsoleSettings, 'files' | 'origins'>): RequestHandler =>
  withConsole(files, ({ index }) => sendPage(index, origins))

/** Answers an address that cannot be decoded, such as `/console/chat/%E0`, with the console, which says that there is no such page. */
export function consoleAtBrokenPath(settings: ConsoleSettings): ErrorRequestHandler {
  const send = sendIndex(settings)
  return (cause, req, res, next) => {
    const isPage = /^\/console\/(?!assets\/)/.test(req.path) && (req.method === 'GET' || req.method === 'HEAD')
    return cause instanceof URIError && isPage ? send(req, res, next) : next(cause)
  }
}

/** Sends browsers to the console. Other clients get a 404 that names the console's address. */
const leadToConsole =
  (basePath: string): RequestHandler =>
  (req, res) => {
    if (req.accepts(['json', 'html']) === 'html') return res.redirect('/console/')
    const { host } = req.headers
    const address = `${host === undefined ? '' : `${req.protocol}://${host}`}/console/`
    throw notFound(
      `no such path; the console for people is at ${address}, and the paths of this API begin with ${basePath}`,
    )
  }
