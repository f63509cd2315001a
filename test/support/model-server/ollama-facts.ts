import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

/** The facts that an Ollama server gives about its models beside their answers: the windows of loaded ones, and the settings of installed ones. */
export type OllamaFacts = {
  loaded: Record<string, number>
  numCtx: Record<string, number | null>
  capabilities?: string[]
  /** The window with which a model is loaded that is not yet. */
  defaultWindow?: number
}

/** Answers `GET /api/ps` and `POST /api/show`; returns false for every other request. */
export async function answerOllama(req: IncomingMessage, res: ServerResponse, facts: OllamaFacts): Promise<boolean> {
  if (req.method === 'GET' && req.url === '/api/ps') {
    const models = Object.entries(facts.loaded).map(([name, context_length]) => ({ name, model: name, context_length }))
    return send(res, 200, { models })
  }
  if (req.method === 'POST' && req.url === '/api/generate') {
    const { model: name } = JSON.parse(await text(req)) as { model: string }
    if (facts.defaultWindow !== undefined) facts.loaded[name] = facts.defaultWindow
    return send(res, 200, { model: name, response: '', done: true, done_reason: 'load' })
  }
  if (req.method !== 'POST' || req.url !== '/api/show') return false
  const { model } = JSON.parse(await text(req)) as { model: string }
  const numCtx = facts.numCtx[model]
  if (numCtx === undefined) return send(res, 404, { error: `model '${model}' not found` })
  const model_info = { 'general.architecture': 'llama', 'llama.context_length': 131_072 }
  const setting = numCtx === null ? '' : `num_ctx                        ${numCtx}\n`
  return send(res, 200, { parameters: `${setting}stop "<|end|>"`, model_info, capabilities: facts.capabilities })
}

function send(res: ServerResponse, status: number, body: unknown): true {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  return true
}
