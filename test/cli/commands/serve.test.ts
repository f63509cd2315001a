import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Ae } from '../../support/ae.ts'
import { until } from '../../support/until.ts'

describe('ae serve, cluster and doctor', () => {
  let home: string
  let ae: Ae
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'agent-engine-ae-'))
    ae = new Ae('http://127.0.0.1:9/v1', home)
  })
  afterEach(() => ae.close())
  after(() => rm(home, { recursive: true, force: true }))

  const env = () => ({ PORT: '0', OPS_PORT: '0', DATA_DIR: join(home, 'data'), CONSOLE: 'false', DRAIN_SECS: '0' })

  it('serve runs the standalone form, and Ctrl-C ends it in order', async () => {
    const terminal = ae.terminal(['serve'], { env: env() })
    await terminal.shows(/"msg":"listening"/)
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(0)
  })

  it('a signal to end reaches the server', async () => {
    const { child, exited } = ae.start(['serve'], { env: env() })
    let log = ''
    child.stdout.on('data', (text: Buffer) => (log += text.toString()))
    await until(() => log.includes('"listening"'), { what: 'the server' })
    child.kill('SIGTERM')
    expect(await exited).to.equal(0)
  })

  it('their arguments, --help and exit codes are those of the scripts', async () => {
    expect((await ae.run(['cluster', '--help'])).out).to.include('--gateways')
    expect((await ae.run(['doctor', '--help'])).out).to.include('npm run doctor')
    expect((await ae.run(['serve'], { env: { ...env(), PORT: 'none' } })).code).to.equal(78)
  })
})
