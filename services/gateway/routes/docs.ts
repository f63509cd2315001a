import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import { notFound } from '../../../shared/kernel/errors.ts'
import { type DocumentOptions, readDocument } from '../../../shared/platform/api/document.ts'
import { Compressible } from '../../http/compressed.ts'
import { GUARDS } from '../../http/console-pages.ts'
import type { RouteTable } from '../../http/routes.ts'

/** Allows the explorer's own files and this API only. The policy of `start.js` checks HTML that is made from a text. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types default dompurify',
].join('; ')

type Asset = { path: string; compressed: Compressible }

const assetAt = (path: string): Asset => ({ path, compressed: new Compressible(() => readFile(path)) })
const packaged = (name: string) =>
  [name, assetAt(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)))] as const

/** Only these files of the package are served: it also contains a page of its own, which loads a foreign API from the network. */
const readAssets = () =>
  new Map([
    packaged('swagger-ui.css'),
    packaged('swagger-ui-bundle.js'),
    packaged('favicon-32x32.png'),
    ['start.js', assetAt(fileURLToPath(new URL('explorer/start.js', import.meta.url)))],
  ])

/** The API explorer and the OpenAPI document that it shows (D1.3 API_EXPLORER). */
export function explorerRoutes(options: DocumentOptions): RouteTable {
  const { basePath } = options
  return {
    '/openapi.json': { get: description(options) },
    '/docs': { get: page(basePath) },
    '/docs/:file': { get: file(readAssets()) },
  }
}

/** Renders the document at the first request and keeps it. */
function description(options: DocumentOptions): RequestHandler {
  let text: Promise<string> | undefined
  const read = () => (text ??= readDocument(options).then((document) => JSON.stringify(document)))
  const compressed = new Compressible(async () => Buffer.from(await read()))
  return async (req, res) => {
    res.type('application/json')
    if (!(await compressed.send(req, res))) res.send(await read())
  }
}

function page(basePath: string): RequestHandler {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agent-engine API</title>
<link rel="icon" type="image/png" href="${basePath}/docs/favicon-32x32.png">
<link rel="stylesheet" href="${basePath}/docs/swagger-ui.css">
</head>
<body>
<div id="explorer"></div>
<script src="${basePath}/docs/swagger-ui-bundle.js"></script>
<script src="${basePath}/docs/start.js" data-url="${basePath}/openapi.json"></script>
</body>
</html>
`
  return (_req, res) => {
    res
      .set({ ...GUARDS, 'Content-Security-Policy': PAGE_POLICY })
      .type('html')
      .send(html)
  }
}

/** A file of the package, or `start.js`, which starts the explorer with this API. */
const file =
  (assets: ReadonlyMap<string, Asset>): RequestHandler =>
  async (req, res) => {
    const asset = assets.get(String(req.params['file']))
    if (!asset) throw notFound('the explorer has no such file')
    const { path, compressed } = asset
    const headers = { 'Cache-Control': 'public, max-age=3600' }
    res.type(extname(path)).set(headers)
    if (!(await compressed.send(req, res))) res.sendFile(path, { cacheControl: false, headers })
  }
