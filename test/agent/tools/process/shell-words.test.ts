import { expect } from 'chai'
import { readShellText } from '../../../../shared/agent/tools/process/shell-words.ts'

const commandsIn = (text: string) => readShellText(text).commands.map((words) => words.join('|'))
const isUnderstood = (text: string) => readShellText(text).isUnderstood
const isSingle = (text: string) => readShellText(text).isSingle

describe('the commands in a text for bash', () => {
  it('have their words without quotes, also where quotes stand within a word', () => {
    expect(commandsIn(`git log --format='%h %s' "a b"c d''e`)).to.deep.equal(['git|log|--format=%h %s|a bc|de'])
  })

  it('are divided by each operator and line feed, and a redirection is no word of them', () => {
    expect(commandsIn('a 1 && b | c; d & e\nf')).to.deep.equal(['a|1', 'b', 'c', 'd', 'e', 'f'])
    expect(commandsIn('make 2>&1 >> out.txt all')).to.deep.equal(['make|all'])
  })

  it('stand behind assignments and keywords', () => {
    expect(commandsIn('A=1 B[0]+=2 if make all; then ls; fi')).to.deep.equal(['make|all', 'ls'])
    expect(readShellText('A=1')).to.deep.equal({ commands: [], isSingle: false, isUnderstood: true })
  })

  it('are one single command only without operators, redirections and assignments', () => {
    expect([' ls -l ', `'ls' "-l"`].every(isSingle)).to.equal(true)
    const others = ['ls; ls', 'ls &', 'ls\nls', 'ls > a', 'ls < a', 'A=1 ls', 'if ls', '', 'A=1']
    expect(others.filter(isSingle)).to.deep.equal([])
  })

  it('have `~`, `#`, `!` and `^` as text within a word', () => {
    expect(commandsIn('git diff HEAD~1 a#b c!d HEAD^^ --x=#1')).to.deep.equal(['git|diff|HEAD~1|a#b|c!d|HEAD^^|--x=#1'])
    const texts = ['ls ~/a', 'ls --dir=~', 'PATH=a:~ ls', 'ls #a', 'ls !a', 'ls ^a', "ls 'a b'~"]
    expect(texts.filter(isUnderstood)).to.deep.equal([])
  })

  it('are not understood with an expansion, a glob, a brace, a comment, an escape or an open quote', () => {
    const texts = [
      'ls $A',
      'ls "$A"',
      'ls `a`',
      'ls *',
      'ls ?',
      'ls {a,b}',
      'ls ~',
      'ls # a',
      'ls \\a',
      "ls 'a",
      'ls "a',
      '(ls)',
      '! ls',
    ]
    expect(texts.filter(isUnderstood)).to.deep.equal([])
  })

  it('are not understood where a redirection has no file behind it, or a document or process instead', () => {
    const texts = ['ls >', 'ls > > a', 'ls > ; rm a', 'ls > && rm a', 'cat << EOF', 'cat <(ls)', 'tee >(ls)']
    expect(texts.filter(isUnderstood)).to.deep.equal([])
  })

  it('that are not understood are those which the text would hold if everything special began one', () => {
    expect(commandsIn(`echo "$(rm -f 'x')" && r\\m y`)).to.deep.equal(['echo', 'rm|-f|x', 'rm|y'])
    expect(commandsIn('echo `A=1 rm x`')).to.deep.equal(['echo', 'rm|x'])
  })
})
