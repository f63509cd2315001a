import { join } from 'node:path'
import { expect } from 'chai'
import { createRawServer, type RawAnswers, type RawForm } from '../../../support/mcp-server/raw.ts'
import { useMcp } from './setup.ts'

const MALFORMED = 'The MCP server one gave an answer that is not valid; the call may have been carried out.'
const CUT_OFF = 'The MCP server one ended its response without an answer; the call may have been carried out.'

/** Answers to the call of a tool, by the name of the tool. */
const ANSWERS: RawAnswers = {
  result_null: '{"jsonrpc": "2.0", "id": $ID, "result": null}',
  result_number: '{"jsonrpc": "2.0", "id": $ID, "result": 5}',
  neither_result_nor_error: '{"jsonrpc": "2.0", "id": $ID}',
  no_content: '{"jsonrpc": "2.0", "id": $ID, "result": {"text": "lost"}}',
  content_no_list: '{"jsonrpc": "2.0", "id": $ID, "result": {"content": "text"}}',
  content_null: '{"jsonrpc": "2.0", "id": $ID, "result": {"content": null}}',
  block_without_text: '{"jsonrpc": "2.0", "id": $ID, "result": {"content": [{"type": "text"}]}}',
  cut: '{"jsonrpc": "2.0", "id": $ID, "resul',
}

/** A response over HTTP that holds them answers its request with them; a server over stdio may print them. */
const NO_ANSWERS: RawAnswers = { number: '5', null: 'null', empty_list: '[]' }

const VALID = '{"jsonrpc": "2.0", "id": $ID, "result": {"content": [{"type": "text", "text": "fine"}]}}'
const OTHER_ID = '{"jsonrpc": "2.0", "id": 999, "result": {"content": []}}'
const NO_ID = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}}'

const stdio = (answers: RawAnswers) => ({
  command: process.execPath,
  args: [join(import.meta.dirname, '../../../support/mcp-server/raw.ts')],
  env: { ANSWERS: JSON.stringify(answers) },
})

describe('a malformed answer of an MCP server', () => {
  const { open, listen } = useMcp()

  /** The outputs of one call of each tool. */
  async function outputsOf(server: object, answers: RawAnswers): Promise<Record<string, string>> {
    const { call } = await open({ one: server }, { callTimeoutMs: 1_000 })
    const outputs: Record<string, string> = {}
    for (const name of Object.keys(answers)) outputs[name] = (await call(`mcp__one__${name}`, {})).output
    return outputs
  }

  const all = (answers: RawAnswers, output: string) =>
    Object.fromEntries(Object.keys(answers).map((name) => [name, output]))

  it('over stdio is a tool error at once, and the next call is answered', async () => {
    const wrong = { ...ANSWERS, other_id: OTHER_ID, no_id: NO_ID }
    const outputs = await outputsOf(stdio({ ...wrong, valid: VALID }), { ...wrong, valid: VALID })
    expect(outputs).to.deep.equal({ ...all(wrong, MALFORMED), valid: 'fine' })
  })

  it('over stdio, a line that is no answer is skipped, whatever it holds, and the log shows the first one', async () => {
    const lines = {
      ...NO_ANSWERS,
      debug: 'starting {"id": $ID}\n{ a: 1 }\n',
      log: '{"level": 30, "id": $ID}\n{"jsonrpc": "2.0", "level": "info"}\n{"jsonrpc": "2.0", "id": $ID, "level": "info"}',
      shown_request: 'got {"jsonrpc": "2.0", "id": $ID}\n{"jsonrpc": "2.0", "id": $ID, "method": "tools/call", "para',
      notification: '{"jsonrpc": "2.0", "method": 5}',
      long: '{"level": 30, "text": "$LONG"}',
    }
    const answers = Object.fromEntries(Object.entries(lines).map(([name, text]) => [name, `${text}\n${VALID}`]))
    const { call, problems } = await open({ one: stdio(answers) }, { callTimeoutMs: 5_000 })
    const outputs: Record<string, string> = {}
    for (const name of Object.keys(answers)) outputs[name] = (await call(`mcp__one__${name}`, {})).output
    expect(outputs).to.deep.equal(all(answers, 'fine'))
    expect(problems).to.deep.equal([
      'The MCP server one writes lines to its standard output that are no messages. They are skipped: 5',
    ])
  })

  const LONG: RawAnswers = {
    id_first: '{"jsonrpc": "2.0", "id": $ID, "result": {"content": [{"type": "text", "text": "$LONG"}]}}',
    id_last: '{"result": {"content": [{"type": "text", "text": "$LONG"}]}, "jsonrpc": "2.0", "id": $ID}',
  }
  const tooLong = (limit: string) =>
    `The MCP server one gave an answer above the limit of ${limit}; the call may have been carried out.`

  it('D5.2: over stdio, an answer above the limit fails its call alone: the server and the other calls go on', async () => {
    const answers = { ...LONG, no_answer: '', pid: VALID.replace('fine', '$PID') }
    const { call } = await open({ one: stdio(answers) }, { callTimeoutMs: 2_000 })
    const outputOf = async (name: string) => (await call(`mcp__one__${name}`, {})).output
    const before = await outputOf('pid')
    const names = ['no_answer', 'id_first', 'pid', 'id_last', 'pid']
    const [none, ...outputs] = await Promise.all(names.map(outputOf))
    expect(none).to.include('did not answer within')
    expect(outputs).to.deep.equal([tooLong('10 MB'), before, tooLong('10 MB'), before])
    expect(await outputOf('pid')).to.equal(before)
  })

  it('D5.2: over stdio, a server that writes without end answers its other calls, and rests in between', async () => {
    const flood = `
      const { write } = process.stdout
      const lines = '{"level":30}\\n'.repeat(5_000)
      process.stdout.write = (text) => write.call(process.stdout, text)
      const more = () => process.stdout.write(lines) ? setImmediate(more) : process.stdout.once('drain', more)
      more()`
    const { args, ...raw } = stdio({ none: '', valid: VALID })
    const server = { ...raw, args: ['--import', `data:text/javascript,${encodeURIComponent(flood)}`, ...args] }
    const { call } = await open({ one: server, two: stdio({ valid: VALID }) }, { callTimeoutMs: 30_000 })
    const [usedAt, startedAt] = [process.cpuUsage(), performance.now()]
    for (const name of ['one', 'two', 'one', 'one', 'one', 'one'])
      expect((await call(`mcp__${name}__valid`, {})).output).to.equal('fine')
    const { user, system } = process.cpuUsage(usedAt)
    expect((user + system) / 1_000 / (performance.now() - startedAt)).to.be.lessThan(0.6)
  })

  it('D5.2: over HTTP, an answer above the limit fails its call alone, and the limit is named', async () => {
    for (const form of ['json', 'stream that stays open'] as const) {
      const url = await listen(createRawServer({ ...LONG, valid: VALID }, form))
      const outputs = await outputsOf({ url }, { ...LONG, valid: VALID })
      expect(outputs, form).to.deep.equal({ ...all(LONG, tooLong('16 MB')), valid: 'fine' })
    }
  })

  const FORMS: RawForm[] = ['json', 'stream that stays open', 'stream that ends']
  for (const form of FORMS) {
    it(`over HTTP, in a ${form}, is a tool error at once, and the next call is answered`, async () => {
      const wrong: RawAnswers = {
        ...ANSWERS,
        ...NO_ANSWERS,
        words: 'Internal error',
        ...(form === 'json' ? {} : { other_id: OTHER_ID }),
      }
      const url = await listen(createRawServer({ ...wrong, valid: VALID }, form))
      const outputs = await outputsOf({ url }, { ...wrong, valid: VALID })
      const empty = form === 'json' ? { empty_list: CUT_OFF } : {}
      expect(outputs).to.deep.equal({ ...all(wrong, MALFORMED), ...empty, valid: 'fine' })
    })
  }

  it('over HTTP, a response without an answer is a tool error at once', async () => {
    const answers = { notification: '{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}' }
    for (const form of ['json', 'stream that ends'] as const) {
      const url = await listen(createRawServer({ ...answers, other_id: OTHER_ID, nothing: '' }, form))
      const names = form === 'json' ? { ...answers, other_id: '' } : { ...answers, nothing: '' }
      expect(await outputsOf({ url }, names), form).to.deep.equal(all(names, CUT_OFF))
    }
  })
})
