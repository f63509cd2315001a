import { execFileSync } from 'node:child_process'
import { expect } from 'chai'

const SCRIPT = `
  import { registerHooks } from 'node:module'
  const resolve = (specifier, context, next) => {
    const resolved = next(specifier, context)
    console.log(resolved.url)
    return resolved
  }
  registerHooks({ resolve })
  for (const file of process.argv.slice(1)) await import(file)`

describe('loading the tools', () => {
  it('the modules that every process imports load no large package', () => {
    const names = [
      'process/bash',
      'registry',
      'todo',
      'web/web-fetch',
      'workspace/file-tools',
      'workspace/search-tools',
    ]
    const files = names.map((name) => new URL(`../../../shared/agent/tools/${name}.ts`, import.meta.url).href)
    const loaded = execFileSync(process.execPath, ['--input-type=module', '-e', SCRIPT, ...files], { encoding: 'utf8' })
    const packages = new Set([...loaded.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].map(([, name]) => name))
    expect([...packages]).to.deep.equal(['lru-cache']) // It is small, and every process loads it.
    expect(loaded).to.include('shared/agent/tools/registry.ts') // The hook has recorded imports.
  })
})
