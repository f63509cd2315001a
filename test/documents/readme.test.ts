import { constants } from 'node:fs'
import { access, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT } from '../deploy/files.ts'
import { Child } from '../support/child.ts'
import { commandsOf, isAsShown } from './blocks.ts'
import type { Shell } from './shell.ts'
import { Stage } from './stage.ts'

const readme = await readFile(`${ROOT}README.md`, 'utf8')
const { scripts } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8')) as { scripts: Record<string, string> }
/** A command that starts the product, with the variables before it. */
const LAUNCH = /^((?:[A-Z_]+=\S+ )*)(scripts\/(?:start|cluster))\b([^#\n]*)/
const READY = /"msg":"listening"|The cluster is ready/

describe('README.md', function () {
  this.timeout(240_000)
  let stage: Stage
  let shell: Shell
  const children: Child[] = []
  before(async () => {
    stage = await Stage.open()
    shell = await stage.shell()
  })
  afterEach(async () => {
    for (const child of children.splice(0)) await child.end('SIGKILL')
  })
  after(async () => {
    await shell?.close()
    await stage?.close()
  })

  /** Starts the product as the line says, with free ports and a folder of its own, and ends it with SIGTERM. */
  async function launch([, variables = '', script = '', args = '']: RegExpExecArray, dir: string): Promise<void> {
    const given = Object.fromEntries(
      variables
        .split(' ')
        .filter(Boolean)
        .map((each) => each.split('=', 2)),
    )
    await mkdir(dir, { recursive: true })
    const env = {
      ...(given as Record<string, string>),
      HOST: '127.0.0.1',
      PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: dir,
      DRAIN_SECS: '1',
    }
    const home = Object.fromEntries(
      ['HOME', 'XDG_CACHE_HOME'].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
    )
    const child = new Child(ROOT + script, args.trim().split(' ').filter(Boolean), { ...home, ...env })
    children.push(child)
    await child.line(READY)
    expect(await child.end()).to.equal(0)
    children.pop()
  }

  for (const { line, text, output } of commandsOf(readme))
    it(`the commands in line ${line} work, and print what is shown`, async () => {
      const rest = []
      for (const [i, command] of text.split('\n').entries()) {
        const started = LAUNCH.exec(command)
        if (started) await launch(started, join(stage.dir, `launch-${line}-${i}`))
        else if (command.startsWith('scripts/test'))
          await access(`${ROOT}scripts/test`, constants.X_OK) // It runs this test.
        else rest.push(command)
      }
      const printed = await shell.run(stage.localized(rest.join('\n')))
      if (output !== undefined) expect(isAsShown(output, printed), `printed:\n${printed}`).to.equal(true)
    })

  it('every npm script, script and path that the text names exists', async () => {
    for (const [, name = ''] of readme.matchAll(/`npm (?:run )?([\w:]+)/g)) expect(scripts, name).to.have.property(name)
    for (const [, path = ''] of readme.matchAll(/`((?:scripts|test|shared|services|deploy)\/[\w./-]+)/g))
      if (!path.includes('NAME')) await access(ROOT + path.replace(/\.$/, ''))
  })
})
