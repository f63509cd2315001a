import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import { type DocumentOptions, readDocument } from '../../../shared/api/document.ts'
import { notFound } from '../../../shared/errors.ts'
import type { RouteTable } from '../../http/routes.ts'

/** Allows the explorer's own files and this API only. swagger-ui sets inline styles. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The only files of the package that are served: it also contains a page of its own, which loads a foreign API from the network. */
const ASSETS = new Set(['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'])

/** The API explorer and the OpenAPI document that it shows (D1.3 API_EXPLORER). */
export function explorerRoutes(options: DocumentOptions): RouteTable {
  const { basePath } = options
  return {
    '/openapi.json': { get: description(options) },
    '/docs': { get: page(basePath) },
    '/docs/:file': { get: file(basePath) },
  }
}

/** Renders the document at the first request and keeps it. */
function description(options: DocumentOptions): RequestHandler {
  let text: string | undefined
  return async (_req, res) => {
    text ??= JSON.stringify(await readDocument(options))
    res.type('application/json').send(text)
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
<script src="${basePath}/docs/start.js"></script>
</body>
</html>
`
  return (_req, res) => {
    res.set('Content-Security-Policy', PAGE_POLICY).type('html').send(html)
  }
}

/** A file of the package, or `start.js`, which starts the explorer with this API. */
function file(basePath: string): RequestHandler {
  const options = { url: `${basePath}/openapi.json`, dom_id: '#explorer', deepLinking: true, validatorUrl: null }
  const startScript = `SwaggerUIBundle(${JSON.stringify(options)})\n`
  return (req, res) => {
    const name = req.params['file']
    if (name === 'start.js') {
      res.type('text/javascript').send(startScript)
      return
    }
    if (typeof name !== 'string' || !ASSETS.has(name)) throw notFound('the explorer has no such file')
    const path = fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`))
    res.sendFile(path, { cacheControl: false, headers: { 'Cache-Control': 'public, max-age=3600' } })
  }
}
