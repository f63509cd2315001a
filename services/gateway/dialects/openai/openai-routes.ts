import type { RouteTable } from '../../../http/routes.ts'
import type { DialectDeps } from '../dialect.ts'
import { chatCompletions } from './chat.ts'
import { openaiFileRoutes } from './files.ts'
import { listModels } from './models.ts'
import { responsesRoutes } from './responses.ts'

/** OpenAI's Chat Completions, Responses, Files and Models. Errors have the native shape, which is OpenAI's. */
export function openaiRoutes(deps: DialectDeps): RouteTable {
  return {
    '/openai/v1/chat/completions': { post: deps.admit(chatCompletions(deps)) },
    ...responsesRoutes(deps),
    ...openaiFileRoutes(deps),
    '/openai/v1/models': {
      async get(_req, res) {
        res.json(await listModels(res, deps))
      },
    },
  }
}
