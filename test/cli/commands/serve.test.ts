import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { until } from '../../support/until.ts'

describe('ae serve, cluster and doctor', () => {
  const at = useAe(async () => ({ url: 'http://127.0.0.1:9/v1', close: async () => {} }))

  const env = () => ({ PORT: '0', OPS_PORT: '0', DATA_DIR: join(at.home, 'data'), CONSOLE: 'false', DRAIN_SECS: '0' })

  it('serve runs the standalone form, and Ctrl-C ends it in order', async () => {
    const terminal = at.ae.terminal(['serve'], { env: env() })
    await terminal.shows(/"msg":"listening"/)
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(0)
  })

  it('serve --open opens the console once the server listens, and prints its address where there is no browser; a signal to end reaches the server', async () => {
    const opened = join(at.home, 'opened')
    const browser = join(at.home, 'browser.sh')
    await writeFile(browser, `#!/bin/sh\necho "$1" > ${opened}\n`, { mode: 0o700 })
    for (const BROWSER of [browser, join(at.home, 'missing')]) {
      const { child, exited, out, err } = at.ae.start(['serve', '--open'], { env: { ...env(), BROWSER } })
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

  it('their arguments, --help and exit codes are those of the scripts', async () => {
    expect((await at.ae.runProcess(['cluster', '--help'])).out).to.include('--gateways')
    expect((await at.ae.runProcess(['doctor', '--help'])).out).to.include('npm run doctor')
    await writeFile(join(at.home, 'wrong.env'), "# a remark\nPORT='none'\nOPS_PORT=1\n")
    const { PORT: _, ...rest } = env()
    const wrong = await at.ae.runProcess(['serve', '--env-file', 'wrong.env'], { env: rest, cwd: at.home })
    expect([wrong.code, wrong.err]).to.satisfy(([code, err]: [number, string]) => code === 78 && err.includes('PORT'))
  })

  it('serve has --open and no other argument, and its help has the settings of the server', async () => {
    const { out } = await at.ae.runProcess(['serve', '--help'])
    expect(out)
      .to.match(/^ {2}--open /m)
      .and.match(/^PORT /m)
    for (const wrong of ['--port', 'standalone'])
      expect((await at.ae.run(['serve', wrong], { env: env() })).code).to.equal(2)
  })
})
