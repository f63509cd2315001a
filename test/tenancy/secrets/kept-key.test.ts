import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { KEPT_KEY_FILE, keepKey, readKeptKey } from '../../../shared/tenancy/secrets/kept-key.ts'
import { useTempFolder } from '../../support/temp-folder.ts'

describe('the kept master key', () => {
  const dir = useTempFolder()

  it('of starts at the same time one makes the key, all get the same, and nothing else is left', async () => {
    const folder = join(dir.path, 'new')
    expect(await readKeptKey(folder)).to.equal(undefined)
    const starts = await Promise.all(Array.from({ length: 16 }, () => keepKey(folder)))
    expect(new Set(starts.map(({ key }) => Buffer.from(key).toString('hex')))).to.have.property('size', 1)
    expect(starts.filter(({ isNew }) => isNew)).to.have.length(1)
    expect(await readdir(folder)).to.deep.equal([KEPT_KEY_FILE])
  })

  it('a file that holds no key is an error with its path, and is not replaced', async () => {
    const file = join(dir.path, KEPT_KEY_FILE)
    await writeFile(file, 'half a k')
    const error = await keepKey(dir.path).catch(String)
    expect(error).to.include(file).and.include('restore')
    expect(await readFile(file, 'utf8')).to.equal('half a k')
  })
})
