import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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

  it('serve --open opens the console once the server listens, and prints its address where there is no browser', async () => {
    const opened = join(home, 'opened')
    const browser = join(home, 'browser.sh')
    await writeFile(browser, `#!/bin/sh\necho "$1" > ${opened}\n`, { mode: 0o700 })
    for (const BROWSER of [browser, '', join(home, 'missing')]) {
      const { child, exited, out, err } = ae.start(['serve', '--open'], { env: { ...env(), BROWSER } })
      let said = ''
      child.stderr.on('data', (text: Buffer) => (said += text.toString()))
      await until(() => (BROWSER === browser ? existsSync(opened) : said.includes('console')), { what: 'the console' })
      child.kill('SIGTERM')
      expect(await exited).to.equal(0)
      const { url } = JSON.parse((await out).split('\n').find((line) => line.includes('"listening"')) ?? '{}')
      const address = new URL('/', url).href
      if (BROWSER === browser) expect(await readFile(opened, 'utf8')).to.equal(`${address}\n`)
      else
        expect(await err)
          .to.match(/^The console is at .*$/m)
          .and.include(` ${address}\n`)
    }
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
