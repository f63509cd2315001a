import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { useMongo } from '../../support/mongo.ts'
import { startMembers } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const WRITE = '/tool Write {"path":"notes/a.txt","content":"hello"}'

const FLOW = `name: invoice-total
model: test-model
system_prompt_template: Add up.
input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
output_schema: {type: object, properties: {total: {type: number}}, required: [total]}
`

describe('ae against the cluster', () => {
  const mongo = useMongo()
  const at = useAe(() =>
    startMembers({
      ...mongo.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
    }),
  )
  before(() => at.server.model.otherwise(answerDirectives))

  const run = (...args: string[]) => at.ae.runProcess(args, { cwd: at.home })

  it('asks for a permission in place, and `a` allows it', async () => {
    const terminal = at.ae.terminal(['run', WRITE])
    const asks = /\[a\]llow.*›$/
    await terminal.shows(asks)
    // A key that comes at once with the question counts for nothing.
    await until(
      () => {
        if (asks.test(terminal.screen.text)) terminal.type('a')
        return /✓ Write/.test(terminal.screen.text)
      },
      { what: 'the call', everyMs: 100 },
    )
    expect(await terminal.exited).to.equal(0)
    expect(terminal.screen.text).to.match(/✓ Write notes\/a\.txt/)
  })

  it('Ctrl-C cancels a run, which another ae follows by the beginning of its id', async () => {
    const terminal = at.ae.terminal(['run', '/say One\n/hang'])
    await terminal.shows(/One/)
    const [id = ''] = (await run('ls', '-o', 'ids')).out.split('\n')
    const { child, exited, out } = at.ae.start(['attach', id.slice(0, 16)])
    let shown = ''
    child.stdout.on('data', (text: Buffer) => (shown += text.toString()))
    await until(() => shown.includes('One'), { what: 'the run in the other ae' })
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(130)
    expect(await exited).to.equal(130)
    expect(await out).to.include('One')
  })

  it('watches a plan to its end', async () => {
    await writeFile(join(at.home, 'plan.yaml'), 'steps:\n  - {id: collect, prompt: /say the changes}\n')
    const { code, out, err } = await run('plans', 'submit', '--watch', 'plan.yaml')
    expect(code, err).to.equal(0)
    expect(out).to.include('the changes')
    expect(err).to.match(/\[1\/1\] ✓ collect/)
  })

  it('pushes, publishes and runs a flow', async () => {
    const type = 'openai-compatible'
    await at.ae.runProcess(['config', 'set', 'instances/main', '-'], {
      input: JSON.stringify({ type, url: at.server.model.url, key: 'sk-test' }),
    })
    await mkdir(join(at.home, 'flows'))
    await writeFile(join(at.home, 'flows/invoice.yaml'), FLOW)
    const pushed = await run('flows', 'push', 'flows', '--yes', '--publish')
    expect(pushed.out, pushed.err).to.equal('invoice-total created\n')
    at.server.model.answer('{"total": 120}')
    const { code, out, err } = await run('flows', 'run', 'invoice-total', '-i', 'main', '-d', '{"text":"two chairs"}')
    expect(code, err).to.equal(0)
    expect(JSON.parse(out)).to.deep.equal({ total: 120 })
  })
})
