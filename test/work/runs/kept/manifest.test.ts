import { expect } from 'chai'
import {
  isLinkInside,
  isPathInside,
  type Manifest,
  readManifest,
  writeManifest,
} from '../../../../shared/work/runs/kept/manifest.ts'

const SHA = 'b'.repeat(64)
const FILE = { path: 'a', mode: 0o600, mtimeMs: 0, bytes: 2, sha256: SHA, object: `${'a'.repeat(16)}/1-${SHA}` }
const manifestOf = (more: Partial<Manifest>): Manifest => ({
  ...{ owner: 'a'.repeat(16), revision: 1, tenant: 't', scope: 's', folders: [], files: [], links: [] },
  ...more,
})

describe('the manifest of a folder', () => {
  it('is read as it was written, with names that are not UTF-8', () => {
    const files = [FILE, { ...FILE, path: 'caf\udce9.txt', packed: { at: 3, of: 5 } }]
    const links = [{ path: 'l\udc80', target: 'caf\udce9.txt' }]
    const manifest = manifestOf({ files, links, folders: [{ path: 'd\udcff', mode: 0o700 }] })
    expect(readManifest(writeManifest(manifest))).to.deep.equal(manifest)
  })

  it('has format 1 unless it needs what releases that know only that do not know', () => {
    const formatOf = (more: Partial<Manifest>) =>
      (JSON.parse(writeManifest(manifestOf(more))) as { format: number }).format
    expect(formatOf({ files: [FILE] })).to.equal(1)
    expect(formatOf({ files: [{ ...FILE, packed: { at: 0, of: 2 } }] })).to.equal(2)
    expect(formatOf({ folders: [{ path: 'd\udcff', mode: 0o700 }] })).to.equal(2)
  })

  it('D5.2: a path lies inside, also one with bytes that are not UTF-8', () => {
    for (const path of ['a', 'a/b', '..a', 'a\udc80', 'é/\udcff']) expect(isPathInside(path), path).to.equal(true)
    for (const path of ['', '.', '..', '/a', 'a/../b', '\udc80/../b', 'a/', 'a\0', 'a\ud800', 'a\udc00'])
      expect(isPathInside(path), JSON.stringify(path)).to.equal(false)
    expect([isLinkInside('a/l', '../b'), isLinkInside('l', '../b'), isLinkInside('l', '/b')]).to.deep.equal([
      true,
      false,
      false,
    ])
  })
})
