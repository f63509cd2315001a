import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startMembers } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const WRITE = '/tool Write {"path":"notes/a.txt","content":"hello"}'

describe('ae against the cluster', () => {
  const at = useAe(startMembers)
  before(() => at.server.model.otherwise(answerDirectives))

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
    const [id = ''] = (await at.ae.run(['ls', '-o', 'ids'])).out.split('\n')
    const { child, exited, out } = at.ae.start(['attach', id.slice(0, 16)])
    let shown = ''
    child.stdout.on('data', (text: Buffer) => (shown += text.toString()))
    await until(() => shown.includes('One'), { what: 'the run in the other ae' })
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(130)
    expect(await exited).to.equal(130)
    expect(await out).to.include('One')
  })
})
