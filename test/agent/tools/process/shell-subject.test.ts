import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { createPolicyRules } from '../../../../shared/agent/tools/policy-rules.ts'
import type { Policy } from '../../../../shared/agent/tools/port.ts'
import { createBashTool } from '../../../../shared/agent/tools/process/bash.ts'
import { makeFolder, removeFolders } from '../setup.ts'

const policyOf = (rules: Record<string, Policy>, command: string) =>
  createPolicyRules(new Map(Object.entries(rules))).policyOf(createBashTool(), { command })

const editPolicyOf = (rules: Record<string, Policy>, command: string) =>
  createPolicyRules(new Map(Object.entries(rules))).policyOf(createBashTool(), { command }, true)

/** Reads a list of commands; every other separator would be part of some command. */
const split = (list: string): string[] => list.split(' ¦ ')

/** Spellings by which bash runs `rm -f x` with the programs of the test. */
const SPELLINGS = [
  ...split(
    `rm -f x ¦  rm  -f x  ¦ rm\t-f\tx ¦ "rm" -f x ¦ 'rm' -f x ¦ r''m -f x ¦ r"m" -f x ¦ \\rm -f x ¦ r\\m -f x ¦ r\\\nm -f x`,
  ),
  ...split(
    `BIN/rm -f x ¦ ./BIN/rm -f x ¦ X=1 rm -f x ¦ X=1 Y="a b" rm -f x ¦ X=$(true) rm -f x ¦ rm -f x & ¦ rm -f x; ¦ rm -f x # y`,
  ),
  ...split(
    `{ rm -f x; } ¦ ( rm -f x ) ¦ (rm -f x) ¦ ! rm -f x ¦ true;rm -f x ¦ true && rm -f x ¦ false || rm -f x ¦ true | rm -f x`,
  ),
  ...split(
    `true |& rm -f x ¦ true & rm -f x ¦ true\nrm -f x ¦ true\n\n  rm -f x ¦ echo $(rm -f x) ¦ echo "$(rm -f x)" ¦ echo \`rm -f x\``,
  ),
  ...split(
    `echo "a \`rm -f x\` b" ¦ cat <(rm -f x) ¦ true > >(rm -f x) ¦ if true; then rm -f x; fi ¦ if rm -f x; then true; fi`,
  ),
  ...split(
    `for i in 1; do rm -f x; done ¦ while rm -f x; do break; done ¦ until rm -f x; do break; done ¦ case a in a) rm -f x;; esac`,
  ),
  ...split(
    `f() { rm -f x; }; f ¦ function f { rm -f x; }; f ¦ time rm -f x ¦ time -p rm -f x ¦ coproc rm -f x; wait ¦ [[ 1 ]] && rm -f x`,
  ),
  ...split(
    `eval rm -f x ¦ eval 'rm -f x' ¦ eval "r""m -f x" ¦ exec rm -f x ¦ command rm -f x ¦ builtin command rm -f x ¦ sh -c "rm -f x"`,
  ),
  ...split(
    `sh -c 'rm -f x' ¦ sh -c 'r''m -f x' ¦ sh -c "r''m -f x" ¦ sh -c 'r$@m -f x' ¦ sh <<< "rm -f x" ¦ sh <<E\nrm -f x\nE ¦ echo rm -f x | sh`,
  ),
  ...split(
    `env rm -f x ¦ env -i PATH="$PATH" rm -f x ¦ env X=1 rm -f x ¦ xargs rm -f x < /dev/null ¦ echo x | xargs rm -f ¦ X=rm; $X -f x ¦ X=rm; "$X" -f x`,
  ),
  ...split(
    `\${X:-rm} -f x ¦ \${X-r}m -f x ¦ $(echo rm) -f x ¦ \`echo rm\` -f x ¦ {rm,-f,x} ¦ {rm,} -f x ¦ r[m] -f x; BIN/r[m] -f x ¦ BIN/r? -f x ¦ BIN/*m -f x`,
  ),
  ...split(
    `$'rm' -f x ¦ $'\\162m' -f x ¦ $'\\x72m' -f x ¦ $"rm" -f x ¦ rm\${IFS}-f\${IFS}x ¦ trap "rm -f x" EXIT ¦ trap 'rm -f x' 0; exit ¦ a=(rm -f x); "\${a[@]}"`,
  ),
  ...split(
    `2>/dev/null rm -f x ¦ >y rm -f x ¦ < /dev/null rm -f x ¦ rm -f x >y ¦ rm -f x 2>&1 ¦ rm>y -f x ¦ &>/dev/null rm -f x ¦ rm -f x >&2`,
  ),
  ...split(
    `true;\n rm -f x ¦ true && { true; rm -f x; } ¦ ((1)); rm -f x ¦ : ; rm -f x ¦ : "$(rm -f x)" ¦ : \${X:=$(rm -f x)} ¦ export X=$(rm -f x)`,
  ),
  ...split(
    `source /dev/stdin <<< "rm -f x" ¦ . /dev/stdin <<< "rm -f x" ¦ echo "rm -f x" > s; sh s ¦ hash -p BIN/rm q; q -f x ¦ alias q=rm; eval q -f x; rm -f x`,
  ),
]

/** Only a command that hangs needs so long. */
const RUN_MS = 20_000

describe('rules for commands', () => {
  afterEach(removeFolders)

  /**
   * Programs that write down how they were called. `run` lets bash run a text with them and nothing else, and returns what was called,
   * also in the background: all that bash has started holds a pipe open, for whose end spawnSync waits.
   */
  async function createShell() {
    const folder = await makeFolder()
    const [bin, work] = [join(folder, 'BIN'), join(folder, 'work')]
    await mkdir(bin)
    for (const name of ['rm', 'git', 'ls']) {
      await writeFile(join(bin, name), `#!/bin/bash\nprintf '%s\\n' "${name} $*" >> ${folder}/called\n`)
      await chmod(join(bin, name), 0o755)
    }
    for (const name of ['sh', 'env', 'xargs', 'cat'])
      await symlink(`/usr/bin/${name === 'sh' ? 'bash' : name}`, join(bin, name))
    const run = async (command: string) => {
      await rm(work, { recursive: true, force: true })
      await mkdir(work)
      await symlink(bin, join(work, 'BIN'))
      await writeFile(join(folder, 'called'), '')
      const { error } = spawnSync('/bin/bash', ['-c', command], {
        cwd: work,
        env: { PATH: bin, HOME: work, LANG: 'C.UTF-8' },
        stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
        timeout: RUN_MS,
        killSignal: 'SIGKILL',
      })
      if (error) throw new Error(`bash did not end: ${command}`, { cause: error })
      const called = (await readFile(join(folder, 'called'), 'utf8')).split('\n').filter((line) => line !== '')
      return { called, files: (await readdir(work)).filter((name) => name !== 'BIN') }
    }
    return { run }
  }

  const DENIED = { Bash: 'allow', 'Bash(rm *)': 'deny' } as const
  const PUSH_DENIED = { 'Bash(git *)': 'allow', 'Bash(git push*)': 'deny' } as const

  it('a denial is passed by no spelling that bash understands, and refuses the plain ones', async () => {
    const { run } = await createShell()
    const passed: string[] = []
    const harmless: string[] = []
    for (const spelling of SPELLINGS) {
      const { called } = await run(spelling)
      if (!called.some((call) => call.startsWith('rm -f'))) harmless.push(spelling)
      if (policyOf(DENIED, spelling) === 'allow') passed.push(spelling)
    }
    expect(SPELLINGS.length).to.be.at.least(100)
    expect(passed).to.deep.equal([])
    expect(harmless.length, `these spellings do not run rm: ${harmless}`).to.be.below(20)
    for (const plain of [
      'rm -f x',
      'rm\t-f x',
      '"rm" -f x',
      'X=1 rm -f x',
      '/bin/rm -f x',
      'if true; then rm -f x; fi',
      'for i in *; do rm $i; done',
      '{ rm -f x; }',
      'true; rm x',
      'rm',
    ])
      expect(policyOf(DENIED, plain), plain).to.equal('deny')
  })

  for (const command of [
    ...split(
      `git  push ¦ git push ¦ git\tpush x ¦ "git" push ¦ git 'push' x ¦ /usr/bin/git push ¦ git push > x ¦ git push; true ¦ git push &`,
    ),
    ...split(
      `git -c a=b push ¦ git --git-dir=x push ¦ git -C . push ¦ git "-c" x push ¦ git --no-pager push ¦ git $X ¦ git {push,} ¦ git p?sh`,
    ),
    ...split(
      `env git push ¦ git status; git push ¦ git status && git -C . push ¦ git -c alias.x='!id' x ¦ git status\ngit push ¦ sh -c "git push"`,
    ),
  ])
    it(`"git push" stays out although "git" is allowed: ${JSON.stringify(command)}`, () => {
      expect(policyOf(PUSH_DENIED, command)).to.be.oneOf(['deny', 'ask', undefined])
      expect(policyOf({ Bash: 'allow', ...PUSH_DENIED }, command)).to.be.oneOf(['deny', 'ask'])
    })

  it('a command that plainly is another one than what is denied is allowed as before', () => {
    for (const command of ['git status', 'git log --oneline -5', "git commit -m 'a b'", 'git  diff HEAD'])
      expect(policyOf(PUSH_DENIED, command), command).to.equal('allow')
    for (const command of ['ls', 'ls -la | sort', 'npm test 2>&1 | tail -5', 'true && echo done > log.txt', 'X=1 make'])
      expect(policyOf(DENIED, command), command).to.equal('allow')
    const nested = { Bash: 'allow', 'Bash(npm run deploy*)': 'deny', 'Bash(ls -l *)': 'deny' } as const
    for (const [command, policy] of [
      ['npm run test', 'allow'],
      ['npm run', 'allow'],
      ['npm run deploy:all', 'deny'],
      ['npm --silent run deploy', 'ask'],
      ['ls x', 'allow'],
      ['ls -a', 'ask'],
      ['ls -l', 'deny'],
    ])
      expect(policyOf(nested, command ?? ''), command).to.equal(policy)
  })

  for (const command of [
    ...split(
      `git log; rm x ¦ git log && id ¦ git log || id ¦ git log | sh ¦ git log |& sh ¦ git log & id ¦ git log & ¦ git log\nid ¦ git log\n\nid`,
    ),
    ...split(
      `git log $(id) ¦ git log \`id\` ¦ git log "$(id)" ¦ git log "\`id\`" ¦ git log > x ¦ git log >> x ¦ git log 2> x ¦ git log &> x ¦ git log >| x`,
    ),
    ...split(
      `git log < x ¦ git log <<< x ¦ git log <<E\nE ¦ git log <(id) ¦ git log >(id) ¦ { git log; } ¦ ( git log ) ¦ ! git log ¦ time git log`,
    ),
    ...split(
      `X=1 git log ¦ PATH=. git log ¦ GIT_PAGER=id git log ¦ git $X ¦ git \${X} ¦ git log * ¦ git log ? ¦ git log [a] ¦ git log ~ ¦ git {log,x}`,
    ),
    ...split(
      `git log $'a' ¦ git log \\; id ¦ git log \\ ¦ git log #x ¦ git log "\\$x" ¦ git log 'x ¦ git log "x ¦ ./git log ¦ /tmp/git log ¦ env git log`,
    ),
    ...split(
      `"git log" x ¦ 'git log' ¦ "git" "log ¦ if true; then git log; fi ¦ for x in git log; do :; done ¦ eval git log ¦ git log; ¦ ;git log`,
    ),
    ...split(
      `git log \u00a0$(id) ¦ git log \u2028id ¦ git log \r id ¦ git log \v id ¦ git log !! ¦ git log ^a^b ¦ git() { id; }; git log ¦ git log %(x)`,
    ),
  ])
    it(`an allowed "git" allows nothing that does more: ${JSON.stringify(command)}`, () => {
      expect(policyOf({ 'Bash(git *)': 'allow' }, command)).to.equal(undefined)
    })

  it('an allowed "git" allows words with marks that mean nothing within them', () => {
    for (const command of ['git diff HEAD~1', 'git show v1.0~2:a.txt', 'git log main#1', 'git checkout HEAD^ a!b'])
      expect(policyOf({ 'Bash(git *)': 'allow', 'Bash(rm *)': 'deny' }, command), command).to.equal('allow')
    expect(policyOf({ 'Bash(git diff HEAD~1)': 'allow' }, 'git diff "HEAD~1"')).to.equal('allow')
  })

  const IN_ANOTHER = split(
    `command rm x ¦ env rm x ¦ sudo rm x ¦ sudo -u root rm x ¦ echo x | xargs rm ¦ find . -delete ¦ /usr/bin/find . -name a -delete ¦ find . -exec rm {} + ¦ RM=rm; $RM x ¦ sh -c 'rm x' ¦ nohup rm x ¦ eval "rm x"`,
  )
  for (const command of IN_ANOTHER)
    it(`a denied command in another's mouth asks, and is denied as a changed input: ${JSON.stringify(command)}`, () => {
      const denied: Record<string, Policy> = { Bash: 'allow', 'Bash(rm *)': 'deny' }
      expect(policyOf(denied, command)).to.equal('ask')
      expect(editPolicyOf(denied, command)).to.equal('deny')
      expect(editPolicyOf({ 'Bash(rm *)': 'deny' }, command)).to.equal('deny')
      expect(editPolicyOf({ Bash: 'ask' }, command)).to.equal('ask')
    })

  it('a changed input that is plainly another one than what is denied is taken', () => {
    for (const command of ['ls -la', 'git diff HEAD~1', 'find . -name "*.txt"'])
      expect(editPolicyOf({ Bash: 'ask', 'Bash(rm -rf *)': 'deny' }, command), command).to.equal(
        command.includes('*') ? 'deny' : 'ask',
      )
  })

  it('a rule compares words: blanks and quotes make no difference where they change nothing', () => {
    const rules = { 'Bash(npm test)': 'allow', 'Bash(git commit -m "a b")': 'allow' } as const
    for (const command of ['npm test', ' npm\t test ', '"npm" \'test\'', "git commit -m 'a b'", 'git commit  -m "a b"'])
      expect(policyOf(rules, command), command).to.equal('allow')
    for (const command of ['npm test x', 'npm "test x"', '"npm test"', 'git commit -m a b', "git commit -m 'a  b'"])
      expect(policyOf(rules, command), command).to.equal(undefined)
  })

  it('a longer rule allows what a shorter one denies, and a command that asks in one part asks as a whole', () => {
    expect(
      policyOf({ 'Bash(git push*)': 'deny', 'Bash(git push origin dev)': 'allow' }, 'git push origin dev'),
    ).to.equal('allow')
    expect(policyOf({ Bash: 'allow', 'Bash(git push*)': 'ask' }, 'ls; git push')).to.equal('ask')
    expect(policyOf({ Bash: 'deny', 'Bash(git *)': 'ask' }, 'git log; id')).to.equal('deny')
  })

  it('whatever bash makes of a text: what is allowed runs only what the rule names, and nothing that is denied', async function () {
    this.timeout(120_000)
    const { run } = await createShell()
    const pieces = [
      'rm',
      'git',
      'ls',
      'push',
      "r''m",
      '\\rm',
      '"rm"',
      '-f',
      'x',
      ' ',
      ' ',
      ' ',
      '\t',
      '\n',
      ';',
      '&&',
      '||',
      '|',
      '&',
      '(',
      ')',
      '{ ',
      ' }',
    ]
    const more = [
      '$(',
      '`',
      '"',
      "'",
      '\\',
      '>',
      '2>&1',
      '<<<',
      '#',
      '!',
      '*',
      'X=1',
      '$X',
      'eval',
      'exec',
      'env',
      'command',
      'sh -c',
      'if',
      'then',
      'fi',
      'BIN/',
    ]
    const text = fc
      .array(fc.constantFrom(...pieces, ...more), { minLength: 1, maxLength: 9 })
      .map((parts) => parts.join(''))
    const word = fc.constantFrom(
      'rm',
      'git',
      'ls',
      'push',
      '-f',
      'x',
      '-c a=b',
      'eval',
      'env',
      'command',
      ';',
      '&&',
      '|',
      '2>&1',
      '"rm"',
      "g''it",
      '> y',
    )
    const words = fc.array(word, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(' '))
    const onlyGit = { 'Bash(git *)': 'allow' } as const
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, words), async (command) => {
        const [denied, single] = [policyOf(DENIED, command), policyOf(onlyGit, command)]
        if (denied !== 'allow' && single !== 'allow') return
        const { called, files } = await run(command)
        if (denied === 'allow') expect(called.filter((call) => call.startsWith('rm '))).to.deep.equal([])
        if (single !== 'allow') return
        expect(called).to.have.length(1)
        expect(called[0]).to.match(/^git /)
        expect(files).to.deep.equal([])
      }),
      { numRuns: 500 },
    )
  })
})
