import { execFile } from 'node:child_process'
import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { useTempFolder } from '../support/temp-folder.ts'
import { makeProject, OURS } from './project.ts'

const run = promisify(execFile)
const PRINT = `console.log(JSON.stringify([process.cwd(), process.argv.slice(2), process.env['NODE_COMPILE_CACHE'] !== undefined]))`

describe('scripts/ae', () => {
  const dir = useTempFolder()

  it('starts the command line from any folder, over a symbolic link, and leaves the folder as it is', async () => {
    await symlink(join(OURS, 'scripts/ae'), join(dir.path, 'ae'))
    const { stdout } = await run(join(dir.path, 'ae'), ['--version'], { cwd: dir.path })
    const { version } = JSON.parse(await readFile(join(OURS, 'package.json'), 'utf8')) as { version: string }
    expect(stdout).to.equal(`${version}\n`)
    const failed = await run(join(dir.path, 'ae'), ['run', '-f', 'none.txt'], { cwd: dir.path }).catch(
      (cause: unknown) => cause,
    )
    expect(failed).to.have.property('code', 2)
    expect(failed).to.have.property('stderr').that.includes('none.txt')
  })

  it('works where the packages were installed by hand, with the arguments and the compile cache', async () => {
    await using project = await makeProject({ 'services/cli/main.ts': PRINT, 'node_modules/.package-lock.json': '{}' })
    const { code, stdout, stderr } = await project.start('scripts/ae', ['run', 'a b']).ended
    expect(code, stderr).to.equal(0)
    expect((JSON.parse(stdout) as unknown[]).slice(1)).to.deep.equal([['run', 'a b'], true])
  })
})
