import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { frameJson } from '../../../../shared/kernel/json.ts'
import type { Wire } from '../shared/response-stream.ts'
import { TextTemplate } from '../shared/text-template.ts'
import { type RpcAnswer, type RpcId, rpcAnswer } from './rpc.ts'
import type { ArtifactUpdate } from './task.ts'

/** A stream of answers to one request. */
export function rpcWire(id: RpcId): Wire<RpcAnswer> {
  const template = new TextTemplate()
  const rendered = (answer: RpcAnswer): string => {
    const piece = 'result' in answer ? pieceOf(answer.result) : undefined
    if (!piece) return `data: ${frameJson(rpcAnswer(id, answer))}\n\n`
    const { key, text, make } = piece
    return template.write(key, text, (other) => rpcAnswer(id, { result: make(other) }))
  }
  return { render: (answers) => answers.map(rendered).join(''), end: '' }
}

type Piece = { key: string; text: string; make(text: string): JsonObject }

/** The text that a result appends to an artifact; `undefined` for any other result. */
function pieceOf({ artifactUpdate: update }: { artifactUpdate?: ArtifactUpdate } & JsonObject): Piece | undefined {
  const part = update?.append === true && update.lastChunk === undefined ? update.artifact.parts[0] : undefined
  if (!update || !part || !('text' in part)) return undefined
  const { artifact } = update
  const make = (text: string) => ({ artifactUpdate: { ...update, artifact: { ...artifact, parts: [{ text }] } } })
  return { key: artifact.artifactId, text: part.text, make }
}
