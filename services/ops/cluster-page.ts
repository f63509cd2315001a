import type { RequestHandler } from 'express'
import { type ConsoleFiles, readConsole } from '../http/console-files.ts'
import { sendAsset, sendPage } from '../http/console-pages.ts'
import type { RouteTable } from '../http/routes.ts'
import type { Overview } from './overview.ts'

/** `/`: the state of the deployment as JSON, or the page of it, which reads the same again. Where no page is built, browsers are led to the members. */
export function clusterRoutes(read: () => Promise<Overview>, readFiles = readConsole): RouteTable {
  let files: Promise<ConsoleFiles | undefined> | undefined
  const withFiles =
    (answer: (files: ConsoleFiles) => RequestHandler, otherwise: RequestHandler): RequestHandler =>
    async (req, res, next) => {
      files ??= readFiles()
      const found = await files
      const handle = found ? answer(found) : otherwise
      await handle(req, res, next)
    }
  const page = withFiles(
    ({ cluster }) => sendPage(cluster),
    (_req, res) => res.redirect('/members'),
  )
  return {
    '/': {
      async get(req, res, next) {
        res.vary('Accept')
        if (req.accepts(['json', 'html']) === 'html') await page(req, res, next)
        else res.json(await read())
      },
    },
    '/console/assets/:file': { get: withFiles(sendAsset, (_req, _res, next) => next()) },
  }
}
