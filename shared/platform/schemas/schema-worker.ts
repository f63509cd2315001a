import { parentPort } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import { compileSchema, UnusableSchema, type Validate } from './compile.ts'
import type { Ready, ThreadAnswer, ThreadTask } from './schema-thread.ts'

/** Runs in the threads that `schema-thread.ts` starts. Answers each task in order. */

/** How much schema text has its validators in memory, which take about 60 times as much. */
const MAX_TEXT = 384 * 1_024

const validators = new LRUCache<string, Validate>({ maxSize: MAX_TEXT })

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
const answer = (message: ThreadAnswer | Ready) => parentPort?.postMessage(message)

parentPort?.on('message', ({ id, schema, value }: ThreadTask) => {
  const validate = validators.get(id) ?? (schema === undefined ? undefined : compile(id, schema))
  if (!validate) return schema === undefined && answer({ type: 'unknown' })
  answer({ type: 'compiled' })
  return value && answer({ type: 'checked', problems: validate(parse(value.json)) })
})

/** Answers with the reason when the schema cannot be used. The first run belongs to the compilation, because it takes as long. */
function compile(id: string, schema: string): Validate | undefined {
  try {
    const validate = compileSchema(JSON.parse(schema))
    validate({})
    validators.set(id, validate, { size: schema.length + 100 })
    return validate
  } catch (cause) {
    if (!(cause instanceof UnusableSchema)) throw cause
    answer({ type: 'unusable', problem: cause.problem })
    return undefined
  }
}

const parse = (json: string | undefined): unknown => (json === undefined ? undefined : JSON.parse(json))

compileSchema({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] })({ text: 1 }) // Loads the rest of ajv.
answer({ type: 'ready' })
