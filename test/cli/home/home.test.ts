// Tests home.ts and full-screen.ts: `ae` without arguments, on a terminal.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startStandalone } from '../../support/product.ts'
import { Terminal } from '../../support/terminal.ts'
import { until } from '../../support/until.ts'

const MAIN = new URL('../../../services/cli/main.ts', import.meta.url).pathname
/** What shows the cursor again and goes back to the lines before. */
const LEFT = '\u001b[?25h\u001b[?1049l'
const [CLEARED, TO_THE_TOP, REST_CLEARED] = ['\u001b[2J', '\u001b[H', '\u001b[J']
const SEQUENCE = new RegExp(String.raw`\x1b\[[\d;?]*[A-Za-z]`, 'g')
/** Has the program fail at a signal, as a fault in it would. */
const FAULT = `data:text/javascript,${encodeURIComponent("process.on('SIGUSR2', () => { throw new Error('a fault') })")}`

describe('ae without arguments, in a terminal', () => {
  const at = useAe(() => startStandalone())
  before(() => at.server.model.otherwise(answerDirectives))
  const terminals: Terminal[] = []
  afterEach(() => terminals.splice(0).forEach((terminal) => terminal.kill()))

  /** In a shell that prints the id of the process first. */
  async function open() {
    const env = { AE_URL: at.server.url, HOME: at.home, XDG_CONFIG_HOME: at.home, NODE_OPTIONS: `--import=${FAULT}` }
    const terminal = new Terminal(['sh', '-c', 'echo "pid $$"; tty; exec "$@"', 'sh', process.execPath, MAIN], env)
    terminals.push(terminal)
    await terminal.shows(/NEEDS YOU[^]*q {2}quit/)
    const pid = Number(/pid (\d+)/.exec(terminal.written)?.[1])
    return { terminal, pid }
  }

  it('is drawn anew in a terminal of another size, and never wider or higher than that', async () => {
    const { terminal } = await open()
    const [device = ''] = /\/dev\/\S+/.exec(terminal.written) ?? []
    for (const [columns, rows, foot] of [
      [30, 9, /up down .*…$/],
      [120, 40, /q {2}quit$/],
    ] as const) {
      const before = terminal.written.length
      await promisify(execFile)('stty', ['-F', device, 'cols', String(columns), 'rows', String(rows)])
      // `stty` sets one after the other, and the last screen has both.
      const drawn = () => terminal.written.slice(before).split(CLEARED).slice(1).at(-1)?.split(TO_THE_TOP)[1] ?? ''
      const lines = await until(
        () => {
          const shown = drawn().replaceAll(SEQUENCE, '').split(/\r+\n/)
          return drawn().endsWith(REST_CLEARED) && shown.length === rows && shown
        },
        { what: 'the screen of the new size', lastSeen: drawn },
      )
      expect(Math.max(...lines.map(({ length }) => length))).to.be.below(columns)
      expect(lines.at(-1)).to.match(foot)
    }
    terminal.type('q')
    expect(await terminal.exited).to.equal(0)
    expect(terminal.written.endsWith(LEFT)).to.equal(true)
  })

  it('a request is opened with Enter, answered with its keys, and the screen comes back; `q` leaves it as it was', async () => {
    const run = at.ae.start(['run', '/tool Write {"path":"home.txt","content":"x"}'])
    run.child.stdin.end()
    const { terminal } = await open()
    await terminal.shows(/ › Write home\.txt +denied in \d:\d\d/)
    terminal.type('\u001b[B\u001b[A\r')
    await terminal.shows(/\+x\n[^]*\[q\]uit · denied in/)
    await until(() => (terminal.type('a'), /AT WORK[^]*nothing is at work|waits for you/.test(terminal.screen.text)), {
      what: 'the screen again',
      everyMs: 100,
      lastSeen: () => terminal.screen.text,
    })
    expect(await run.exited).to.equal(0)
    terminal.type('q')
    expect(await terminal.exited).to.equal(0)
    expect(terminal.written.endsWith(LEFT)).to.equal(true)
    expect(terminal.screen.text)
      .to.match(/perm_[0-9a-f]{32} allowed/)
      .and.not.include('NEEDS YOU')
  })

  for (const [what, end, code] of [
    ['Ctrl-C', ({ terminal }: { terminal: Terminal }) => terminal.type('\u0003'), 130],
    ['SIGINT', ({ pid }: { pid: number }) => process.kill(pid, 'SIGINT'), 130],
    ['SIGTERM', ({ pid }: { pid: number }) => process.kill(pid, 'SIGTERM'), 143],
    ['SIGHUP', ({ pid }: { pid: number }) => process.kill(pid, 'SIGHUP'), 143],
    ['a fault', ({ pid }: { pid: number }) => process.kill(pid, 'SIGUSR2'), 1],
  ] as const)
    it(`${what} gives the terminal back as it was, and ends with ${code}`, async () => {
      const { terminal, ...rest } = await open()
      end({ terminal, ...rest })
      expect(await terminal.exited).to.equal(code)
      expect(terminal.written.split(LEFT), 'once').to.have.length(2)
      if (what === 'a fault') expect(terminal.screen.text).to.include('Error: a fault').and.not.include('NEEDS YOU')
    })

  it('is the help where there is no terminal', async () => {
    const { code, err } = await at.ae.run([])
    expect(code).to.equal(2)
    expect(err).to.include('Usage: ae').and.not.include('\u001b')
  })
})
