import { createRequire, type ResolveFnOutput, type ResolveHookContext } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { findByName } from '../../services/wiring/quick-imports.ts'

describe('how a process finds the files that it imports', () => {
  const BY_NODE: ResolveFnOutput = { url: 'file:///by-node.ts' }
  const find = (specifier: string, context: Partial<ResolveHookContext> = { parentURL: 'file:///app/services/a.ts' }) =>
    findByName(specifier, context as ResolveHookContext, () => BY_NODE)

  it('finds a file of the project by its name, beside the file that imports it', () => {
    const found = (url: string) => ({ url, format: 'module-typescript', shortCircuit: true })
    expect(find('./b.ts')).to.deep.equal(found('file:///app/services/b.ts'))
    expect(find('../shared/b.ts')).to.deep.equal(found('file:///app/shared/b.ts'))
  })

  it('gives Express its body parsers and its query parser when they are called, and others the packages themselves', () => {
    for (const specifier of ['body-parser', 'qs']) {
      const { url } = find(specifier, { parentURL: 'file:///app/node_modules/express/lib/express.js' }) as {
        url: string
      }
      const late = createRequire(import.meta.url)(fileURLToPath(url))
      expect(late.json({ limit: 1 })).to.be.a('function')
      expect(late.parse('a[b]=c')).to.deep.equal({ a: { b: 'c' } })
      expect(find(specifier, { parentURL: 'file:///app/node_modules/other/index.js' })).to.equal(BY_NODE)
    }
  })

  it('leaves packages, Node modules, other files and the first file to Node', () => {
    for (const specifier of ['express', '@ai-sdk/openai', 'node:fs', './package.json', './b.js', '/app/b.ts'])
      expect(find(specifier), specifier).to.equal(BY_NODE)
    expect(find('./main.ts', {})).to.equal(BY_NODE)
  })
})
