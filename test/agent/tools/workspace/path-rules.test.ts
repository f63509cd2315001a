import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createPolicyRules } from '../../../../shared/agent/tools/policy-rules.ts'
import type { Policy, ToolBox } from '../../../../shared/agent/tools/port.ts'
import { createFileTools } from '../../../../shared/agent/tools/workspace/file-tools.ts'
import { createSearchTools } from '../../../../shared/agent/tools/workspace/search-tools.ts'
import { callerOf, makeFolder, removeFolders } from '../setup.ts'

describe('rules for paths', () => {
  const tools = [...createFileTools(), ...createSearchTools()]
  let folder: string
  beforeEach(async () => {
    folder = await makeFolder()
    await mkdir(join(folder, 'secret'))
    await mkdir(join(folder, 'docs'))
    await writeFile(join(folder, 'secret/key.txt'), 'the password')
    await writeFile(join(folder, 'secret.txt'), 'the password')
    await writeFile(join(folder, 'docs/a.txt'), 'no password')
    await symlink('../secret/key.txt', join(folder, 'docs/to-file'))
    await symlink('../secret', join(folder, 'docs/to-folder'))
    await symlink('a.txt', join(folder, 'docs/to-same'))
  })
  afterEach(removeFolders)

  /** Calls the tools as the engine does for calls whose policy is not `deny`. */
  function callUnder(permissions: Record<string, Policy>) {
    const rules = createPolicyRules(new Map(Object.entries(permissions)))
    const policyOf: ToolBox['policyOf'] = (name, input) => {
      const tool = tools.find((each) => each.name === name) ?? expect.fail(`no tool ${name}`)
      return rules.policyOf(tool, input) ?? tool.defaultPolicy
    }
    const call = callerOf(tools, folder)
    return async (name: string, input: Record<string, string>) => {
      expect(policyOf(name, input), `${name} ${input['path']}`).not.to.equal('deny')
      return call(name, input, { policyOf })
    }
  }

  const NO_SECRETS = { 'Read(secret*)': 'deny' } as const

  it('what Read denies is not read over a link to the file or to its folder; other links are followed', async () => {
    const call = callUnder(NO_SECRETS)
    for (const path of ['docs/to-file', 'docs/to-folder/key.txt', './docs//to-file']) {
      const { output, isError } = await call('Read', { path })
      expect([isError, output.includes('password')], output).to.deep.equal([true, false])
      expect(output).to.match(/a symbolic link leads to a file for which a stricter rule holds/)
    }
    expect((await call('Read', { path: 'docs/to-same' })).output).to.equal('1\tno password')
  })

  it('what Read denies is shown by neither Grep nor Glob, in whatever folder the search begins', async () => {
    const call = callUnder(NO_SECRETS)
    const found = async (name: string, input: Record<string, string>) => (await call(name, input)).output.split('\n')
    expect(await found('Grep', { pattern: 'password' })).to.deep.equal(['docs/a.txt:1:no password'])
    expect(await found('Glob', { pattern: '**' })).to.deep.equal(['docs/a.txt'])
    for (const path of ['secret', 'secret/key.txt', 'secret.txt', 'docs/to-folder', 'docs/to-file']) {
      expect(await found('Grep', { pattern: 'password', path }), path).to.deep.equal(['No matches.'])
      expect(await found('Glob', { pattern: '**', path }), path).to.deep.equal(['No matches.'])
    }
  })

  it('a rule that allows a folder to be written allows no file that a link in it leads to', async () => {
    const call = callUnder({ 'Write(docs/*)': 'allow', 'Edit(docs/*)': 'allow' })
    for (const path of ['docs/to-file', 'docs/to-folder/key.txt', 'docs/to-folder/new.txt']) {
      expect((await call('Write', { path, content: 'x' })).isError, path).to.equal(true)
      expect((await call('Edit', { path, old_string: 'the', new_string: 'x' })).isError, path).to.equal(true)
    }
    expect(await readFile(join(folder, 'secret/key.txt'), 'utf8')).to.equal('the password')
    expect((await call('Write', { path: 'docs/to-same', content: 'x' })).isError).to.equal(false)
    expect((await call('Write', { path: 'docs/new/b.txt', content: 'x' })).isError).to.equal(false)
  })
})
