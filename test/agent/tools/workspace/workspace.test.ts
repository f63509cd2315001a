import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, realpath, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { expect } from 'chai'
import { assert, pre, property, stringMatching } from 'fast-check'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { createSearchTools } from '../../../../shared/agent/tools/workspace/search-tools.ts'
import {
  isInside,
  relativePath,
  removeWorkspace,
  sessionFolder,
  workspacePath,
} from '../../../../shared/agent/tools/workspace/workspace.ts'
import { DEFAULT_TENANT, parseTenant, type TenantId } from '../../../../shared/kernel/tenant.ts'
import { tenantId } from '../../../support/tenant.ts'
import { type Caller, callerOf, makeFolder, removeFolders } from '../setup.ts'
import { swapBefore } from './swap.ts'

const SECRET = 'the secret outside'

function tenant(id: string): TenantId {
  const parsed = parseTenant(id)
  if (!parsed) throw new Error(`not a tenant: ${id}`)
  return parsed
}

describe('the walls of a workspace', () => {
  let outside: string
  let workspace: string
  let call: Caller

  beforeEach(async () => {
    const folder = await makeFolder()
    outside = join(folder, 'outside')
    workspace = join(folder, 'workspace')
    await mkdir(join(workspace, 'sub'), { recursive: true })
    await mkdir(outside)
    await writeFile(join(outside, 'secret.txt'), SECRET)
    await writeFile(join(workspace, 'sub', 'own.txt'), 'own')
    call = callerOf([...createFileTools(), ...createSearchTools()], workspace)
  })
  afterEach(removeFolders)

  /** Calls all five tools with `path`. None may return the secret, and nothing outside may change. */
  async function expectClosed(path: string): Promise<void> {
    const outcomes = [
      await call('Read', { path }),
      await call('Edit', { path, old_string: 'secret', new_string: 'gone' }),
      await call('Write', { path, content: 'overwritten' }),
      await call('Grep', { pattern: 'secret', path }),
      await call('Glob', { pattern: '**', path }),
    ]
    expect(
      outcomes.map(({ isError }) => isError),
      path,
    ).to.deep.equal([true, true, true, true, true])
    expect(JSON.stringify(outcomes), path).not.to.include(SECRET)
    expect(await readdir(outside)).to.deep.equal(['secret.txt'])
    expect(await readFile(join(outside, 'secret.txt'), 'utf8')).to.equal(SECRET)
  }

  it('D5.2: no absolute path and no ".." reaches a file outside', async () => {
    const paths = ['../outside/secret.txt', 'sub/../../outside/secret.txt', './../outside/secret.txt', '..', 'sub/..']
    const windows = ['..\\outside\\secret.txt', 'C:\\secret.txt', '\\\\host\\secret.txt', 'sub\\..\\..\\outside']
    for (const path of [...paths, ...windows, join(outside, 'secret.txt'), '/etc/passwd']) await expectClosed(path)
  })

  it('D5.2: a symbolic link to a file outside is neither read nor written through', async () => {
    await symlink(join(outside, 'secret.txt'), join(workspace, 'link.txt'))
    await symlink('../../outside/secret.txt', join(workspace, 'sub', 'relative.txt'))
    await expectClosed('link.txt')
    await expectClosed('sub/relative.txt')
  })

  it('D5.2: a symbolic link to a folder beside the workspace whose name begins with the workspace’s is refused', async () => {
    const sibling = `${workspace}0`
    await mkdir(sibling)
    await writeFile(join(sibling, 'secret.txt'), SECRET)
    await symlink(sibling, join(workspace, 'sibling'))
    await symlink(join(sibling, 'secret.txt'), join(workspace, 'sibling.txt'))
    for (const path of ['sibling', 'sibling/secret.txt', 'sibling/new.txt', 'sibling.txt']) await expectClosed(path)
    expect(await readdir(sibling)).to.deep.equal(['secret.txt'])
    expect(await readFile(join(sibling, 'secret.txt'), 'utf8')).to.equal(SECRET)
  })

  it('D5.2: nothing below a symbolic link to a folder outside can be read or created', async () => {
    await symlink(outside, join(workspace, 'door'))
    await symlink('door', join(workspace, 'second'))
    for (const path of [
      'door/secret.txt',
      'door/new.txt',
      'door/new/deep.txt',
      'second/secret.txt',
      'second/new.txt',
    ]) {
      await expectClosed(path)
    }
  })

  it('D5.2: a symbolic link to a path that does not exist is not written through', async () => {
    await symlink(join(outside, 'new.txt'), join(workspace, 'dangling.txt'))
    await symlink(join(outside, 'new'), join(workspace, 'danglingdir'))
    await expectClosed('dangling.txt')
    await expectClosed('danglingdir/x.txt')
  })

  it('D5.2: Glob and Grep do not leave the workspace', async () => {
    await symlink(outside, join(workspace, 'door'))
    await symlink(join(outside, 'secret.txt'), join(workspace, 'link.txt'))
    expect((await call('Glob', { pattern: '**' })).output).to.equal('sub/own.txt')
    expect((await call('Grep', { pattern: 'secret|own' })).output).to.equal('sub/own.txt:1:own')
  })

  it('a symbolic link to a path inside can be read and written through', async () => {
    await symlink('sub/own.txt', join(workspace, 'inner.txt'))
    await symlink('sub', join(workspace, 'innerdir'))
    expect((await call('Read', { path: 'inner.txt' })).output).to.equal('1\town')
    expect((await call('Write', { path: 'innerdir/new.txt', content: 'x' })).isError).to.equal(false)
    expect((await call('Write', { path: 'inner.txt', content: 'changed' })).isError).to.equal(false)
    expect(await readFile(join(workspace, 'sub', 'own.txt'), 'utf8')).to.equal('changed')
    expect((await readdir(join(workspace, 'sub'))).toSorted()).to.deep.equal(['new.txt', 'own.txt'])
  })

  it('the path of the workspace itself may lead through a symbolic link', async () => {
    await symlink(workspace, join(outside, '..', 'alias'))
    const aliased = callerOf(createFileTools(), join(outside, '..', 'alias'))
    expect((await aliased('Read', { path: 'sub/own.txt' })).output).to.equal('1\town')
  })

  it('a path with a NUL byte or an unpaired surrogate is refused', async () => {
    for (const path of ['sub/own.txt\0.png', '\0', 'a\ud800']) await expectClosed(path)
  })

  it('a FIFO, a socket, a device and a folder are refused at once', async () => {
    execFileSync('mkfifo', [join(workspace, 'fifo')])
    const server = createServer().listen(join(workspace, 'socket'))
    await symlink('/dev/zero', join(workspace, 'zero'))
    for (const path of ['fifo', 'socket', 'zero', 'sub', '.']) {
      const outcomes = [await call('Read', { path }), await call('Write', { path, content: '' })]
      expect(
        outcomes.map(({ isError }) => isError),
        path,
      ).to.deep.equal([true, true])
    }
    expect((await call('Read', { path: 'fifo' })).output).to.equal(
      'fifo: this is a device, pipe or socket, not a regular file.',
    )
    expect((await call('Read', { path: 'sub' })).output).to.equal('sub: this is a folder, not a file.')
    expect((await call('Grep', { pattern: '.' })).output).to.equal('sub/own.txt:1:own')
    server.close()
  })

  it('D5.2: Read returns nothing from outside while another process swaps a folder for a link and back', async () => {
    const folder = join(workspace, 'flip')
    await mkdir(folder)
    await writeFile(join(folder, 'secret.txt'), 'inside')
    const attacker = spawn(process.execPath, [join(import.meta.dirname, 'flip-folder.ts'), folder, outside])
    await once(attacker.stdout, 'data')
    const answers = new Set<string>()
    for (let round = 0; round < 300; round += 1) {
      const reads = Array.from({ length: 4 }, () => call('Read', { path: 'flip/secret.txt' }))
      for (const { output } of await Promise.all(reads)) answers.add(output)
    }
    attacker.kill('SIGKILL')
    await once(attacker, 'exit')
    expect([...answers].join())
      .to.include('inside')
      .and.not.to.include(SECRET)
  })

  describe('a folder that is swapped for a link between the check and the use', () => {
    let folder: string
    beforeEach(async () => {
      folder = join(await realpath(workspace), 'flip')
      await mkdir(folder)
      await writeFile(join(folder, 'secret.txt'), 'inside')
    })
    afterEach(async () => {
      expect(await readFile(join(outside, 'secret.txt'), 'utf8')).to.equal(SECRET)
      expect(await readdir(outside)).to.deep.equal(['secret.txt'])
    })

    const swap = (fsCall: 'open' | 'rename', tool: string, input: object = {}) =>
      swapBefore({ call: fsCall, folder, target: outside }, () => call(tool, { path: 'flip/secret.txt', ...input }))

    it('D5.2: Read opens nothing outside', async () => {
      const { output, isError } = await swap('open', 'Read')
      expect([isError, output]).to.deep.equal([true, 'The path was changed while it was being opened. Try again.'])
    })

    it('D5.2: Write writes nothing outside when the folder is swapped before the new file is opened', async () => {
      const { output, isError } = await swap('open', 'Write', { content: 'overwritten' })
      expect([isError, output]).to.deep.equal([true, 'The path was changed while it was being opened. Try again.'])
    })

    it('D5.2: Write replaces nothing outside when the folder is swapped before the rename', async () => {
      const { isError } = await swap('rename', 'Write', { content: 'overwritten' })
      expect(isError).to.equal(true)
    })

    it('Read does not read a pipe that takes the place of the file', async () => {
      const pipes = join(workspace, 'pipes')
      await mkdir(pipes)
      execFileSync('mkfifo', [join(pipes, 'secret.txt')])
      const { output, isError } = await swapBefore({ call: 'open', folder, target: pipes }, () =>
        call('Read', { path: 'flip/secret.txt' }),
      )
      expect([isError, output]).to.deep.equal([
        true,
        'flip/secret.txt: this is a device, pipe or socket, not a regular file.',
      ])
    })

    it('D5.2: Edit neither reads nor writes outside', async () => {
      const { output, isError } = await swap('open', 'Edit', { old_string: 'secret', new_string: 'gone' })
      expect([isError, output]).to.deep.equal([true, 'The path was changed while it was being opened. Try again.'])
    })
  })

  it('in a workspace that does not exist Read finds no file, Glob and Grep nothing, and Write creates it for its owner only', async () => {
    const absent = join(outside, '..', 'tenant', 'run_1')
    const there = callerOf([...createFileTools(), ...createSearchTools()], absent)
    expect(await there('Read', { path: 'a.txt' })).to.deep.equal({
      output: 'a.txt: no such file or folder.',
      isError: true,
    })
    expect(await there('Glob', { pattern: '**' })).to.deep.equal({ output: 'No matches.', isError: false })
    expect(await there('Grep', { pattern: 'a' })).to.deep.equal({ output: 'No matches.', isError: false })
    expect((await there('Write', { path: 'deep/a.txt', content: 'x' })).isError).to.equal(false)
    expect((await stat(absent)).mode & 0o777).to.equal(0o700)
  })

  it('no answer contains the absolute path of the workspace', async () => {
    const answers = [
      await call('Read', { path: 'none/at/all.txt' }),
      await call('Read', { path: 'sub/own.txt/deeper' }),
      await call('Write', { path: `${'x'.repeat(300)}.txt`, content: '' }),
      await call('Glob', { pattern: '*', path: 'none' }),
    ]
    expect(answers.map(({ isError }) => isError)).to.deep.equal([true, true, true, true])
    expect(JSON.stringify(answers)).not.to.include(await realpath(workspace))
  })
})

describe('a path inside a workspace', () => {
  it('is normalized to names with / between them, and . for the workspace itself', () => {
    const cases = [
      ['a', 'a'],
      ['a//b/./c/', 'a/b/c'],
      ['', '.'],
      ['.', '.'],
      ['./', '.'],
      ['..a/b../...', '..a/b../...'],
      ['a\\b', 'a\\b'],
    ] as const
    for (const [path, normalized] of cases) expect(relativePath(path), path).to.equal(normalized)
  })

  it('has at most 1,024 characters', () => {
    expect(relativePath('x'.repeat(1_024))).to.have.length(1_024)
    expect(() => relativePath('x'.repeat(1_025))).to.throw('The path is longer than 1024 characters.')
  })

  it('is neither absolute nor does it hold "..", on any operating system', () => {
    for (const path of ['/a', '\\a', 'C:\\a', 'C:/a'])
      expect(() => relativePath(path), path).to.throw('absolute paths are not allowed')
    for (const path of ['..', '../a', 'a/../b', 'a\\..\\b', '..\\a', 'a/..'])
      expect(() => relativePath(path), path).to.throw('".." is not allowed')
    for (const path of ['a\0', 'a\ud800'])
      expect(() => relativePath(path)).to.throw('characters that a file name cannot')
  })

  it('lies inside the workspace when it is the workspace or lies below it', () => {
    for (const path of ['/w/s1', '/w/s1/a', '/w/s1/..a']) expect(isInside('/w/s1', path), path).to.equal(true)
    for (const path of ['/w', '/w/s10', '/w/s10/a', '/w/s', '/', '/x/w/s1/a'])
      expect(isInside('/w/s1', path), path).to.equal(false)
  })
})

describe('the folders of workspaces', () => {
  it('a generated id is the name of its folder, so that an operator can find it', () => {
    expect(workspacePath('/w', DEFAULT_TENANT, 'sess_0af1')).to.equal('/w/t_default/sess_0af1')
    const token = '0123456789abcdef'
    const pathOf = (sessionId: string) => workspacePath('/w', DEFAULT_TENANT, sessionFolder(sessionId, token))
    expect(pathOf('sess_0af1')).to.equal(`/w/t_default/sess_0af1.${token}`)
    expect(basename(pathOf('My session'))).to.match(/^sha256\.[0-9a-f]{64}\.0123456789abcdef$/)
  })

  it('D1.3 WORKSPACE_DIR: the folder lies two levels below the root for every tenant and id', () => {
    const ids = ['.', '..', '...', 'a:b', 'A', '-x', '.hidden', 'con', 'x'.repeat(128)]
    for (const id of ids) {
      const path = workspacePath('/w', tenant(id), id)
      expect(relative('/w', resolve(path)).split('/'), id).to.have.length(2)
      expect(basename(path).length, id).to.be.at.most(100)
    }
  })

  it('two tenants or two scopes never share a folder, also on a file system that ignores case', () => {
    const id = stringMatching(/^[A-Za-z0-9._:-]{1,128}$/)
    const noTwins = property(id, id, id, id, (t1, s1, t2, s2) => {
      pre(t1 !== t2 || s1 !== s2)
      const paths = [workspacePath('/w', tenantId(t1), s1), workspacePath('/w', tenantId(t2), s2)]
      return paths[0]?.toLowerCase() !== paths[1]?.toLowerCase()
    })
    assert(noTwins)
    const twins = [workspacePath('/w', tenant('acme'), 'S1'), workspacePath('/w', tenant('acme'), 's1')]
    expect(twins[0]?.toLowerCase()).not.to.equal(twins[1]?.toLowerCase())
    const forged = workspacePath('/w', tenant('acme'), basename(twins[0] ?? ''))
    expect(forged).not.to.equal(twins[0])
  })

  it('a workspace is removed with its content; links in it are not followed; an absent workspace is ignored', async () => {
    const root = await makeFolder()
    const keep = join(root, 'keep.txt')
    await writeFile(keep, 'x')
    const path = workspacePath(root, DEFAULT_TENANT, 'run_1')
    await mkdir(join(path, 'deep'), { recursive: true })
    await symlink(root, join(path, 'deep', 'up'))
    await removeWorkspace(path)
    await removeWorkspace(path)
    expect(await readdir(dirname(path))).to.deep.equal([])
    expect(await readFile(keep, 'utf8')).to.equal('x')
    await removeFolders()
  })
})
