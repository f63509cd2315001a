import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { ROOT } from '../deploy/files.ts'

const read = (path: string): string => readFileSync(ROOT + path, 'utf8')

/** The packages of npm that the guide names with a version, and the requirement of Python. */
const named = (): [name: string, version: string][] =>
  [...read('shared/platform/api/guide.md').matchAll(/[` ]((?:@[\w-]+\/)?[\w-]+)@(\d+\.\d+)\b/g)].map(
    ([, name = '', version = '']) => [name, version],
  )

/** The versions that the tests run. A package may be there under another name too, in an older version. */
function tested(name: string): string[] {
  const { devDependencies = {}, dependencies = {} } = JSON.parse(read('package.json')) as Record<
    string,
    Record<string, string>
  >
  return Object.entries({ ...dependencies, ...devDependencies }).flatMap(([as, version]) => {
    if (as === name) return [version]
    return version.startsWith(`npm:${name}@`) ? [version.slice(`npm:${name}@`.length)] : []
  })
}

describe('the versions of other products that shared/platform/api/guide.md names', () => {
  it('are those that the tests run', () => {
    const stale = named().filter(([name, version]) => !tested(name).some((each) => each.startsWith(`${version}.`)))
    expect(stale).to.deep.equal([])
    expect(named().map(([name]) => name)).to.include.members(['ai', '@ag-ui/client', 'openai', '@a2a-js/sdk'])
    expect(read('shared/platform/api/guide.md')).to.contain(
      /^openai==\S+/m.exec(read('scripts/local-services/openapi-python-client.txt'))?.[0],
    )
  })
})
