import { constants } from 'node:fs'
import { access, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readOptions } from '../../scripts/local-cluster/options.ts'
import { ROOT } from '../deploy/files.ts'
import { Child } from '../support/child.ts'
import { useOpened } from '../support/fixture.ts'
import { until } from '../support/until.ts'
import { type Commands, commandsOf, isAsShown } from './blocks.ts'
import { addressOf, argsOf, home, isLaunch, launch } from './launch.ts'
import { Stage } from './stage.ts'

const readme = await readFile(`${ROOT}README.md`, 'utf8')
/** The command line's usual address in the cluster form. */
const CLUSTER = 'http://127.0.0.1:8080/api/v1'

/** Its comments say that the second and the third command are for shells of their own. */
const isForThreeShells = ({ text }: Commands): boolean => text.includes('# in a second shell')

describe('README.md', function () {
  this.timeout(240_000)
  const children: Child[] = []
  const stage = useOpened(() => Stage.open())
  const shell = useOpened(() => stage.shell())
  afterEach(async () => {
    for (const child of children.splice(0)) await child.end('SIGKILL')
  })

  function start(command: string, dir: string): Child {
    const child = launch(command, dir)
    children.push(child)
    return child
  }

  for (const { line, text, output } of commandsOf(readme).filter((block) => !isForThreeShells(block)))
    it(`the commands in line ${line} work, and print what is shown`, async () => {
      const rest = []
      for (const [i, command] of text.split('\n').entries()) {
        if (command.startsWith('scripts/cluster'))
          readOptions(argsOf(command)) // The block for three shells starts a cluster.
        else if (isLaunch(command)) {
          const child = start(command, join(stage.dir, `launch-${line}-${i}`))
          await addressOf(child)
          expect(await child.end()).to.equal(0)
        } else if (command.startsWith('scripts/test'))
          await access(`${ROOT}scripts/test`, constants.X_OK) // It runs this test.
        else rest.push(command)
      }
      const printed = await shell.run(stage.localized(rest.join('\n')))
      if (output !== undefined) expect(isAsShown(output, printed), `printed:\n${printed}`).to.equal(true)
    })

  for (const { line, text, output = '' } of commandsOf(readme).filter(isForThreeShells))
    it(`the commands in line ${line} show that a run outlives its worker, which dies as soon as the run has begun`, async () => {
      const [first = '', second = '', third = ''] = text.split('\n')
      const dir = join(stage.dir, 'three-shells')
      const cluster = await addressOf(start(first, join(dir, 'data')))
      await symlink(`${ROOT}scripts`, join(dir, 'scripts'))
      const inShell = (command: string) =>
        new Child('bash', ['-c', `exec 2>&1; cd ${dir}; ${command}`], { ...home(), LANG: 'C.UTF-8' })
      const reader = inShell(second.replace(CLUSTER, cluster))
      children.push(reader)
      let printed = ''
      reader.process.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
      await until(() => printed.includes('I begin.'), { what: 'the run to begin', lastSeen: () => printed })
      expect(await inShell(third).exited).to.equal(0)
      expect(await reader.exited).to.equal(0)
      expect(isAsShown(output, printed), `printed:\n${printed}`).to.equal(true)
    })
})
