import type { RequestHandler } from 'express'
import { type ConsoleFiles, readConsole } from '../http/console-files.ts'
import { sendAsset, sendPage } from '../http/console-pages.ts'
import type { RouteTable } from '../http/routes.ts'
import type { Overview } from './overview.ts'

/** `/`: the state of the deployment as JSON, or for a browser the page of it where one is built, which reads the same again. */
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
  const json: RequestHandler = async (_req, res) => {
    res.json(await read())
  }
  const page = withFiles(({ cluster }) => sendPage(cluster), json)
  return {
    '/': {
      async get(req, res, next) {
        res.vary('Accept')
        await (req.accepts(['json', 'html']) === 'html' ? page : json)(req, res, next)
      },
    },
    '/console/assets/:file': { get: withFiles(sendAsset, (_req, _res, next) => next()) },
  }
}
