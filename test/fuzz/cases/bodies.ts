import { gzipSync } from 'node:zlib'
import type { Case } from '../case.ts'
import { post, raw } from '../request.ts'

const LIMIT = 10_485_760
const RUN = '/v1/agent/run'

/** A body that is not an object is refused before the missing prompt is noticed. */
const run = (body: string | Buffer) => post(RUN, body)
const create = (body: string | Buffer) => post('/v1/sessions', body)
const bytes = (...values: number[]) => raw('{"prompt":"', Buffer.from(values), '"}')
const filled = (open: string, unit: string, close: string): string =>
  open + unit.repeat(Math.floor((LIMIT - open.length - close.length) / unit.length)) + close
/** As many different units as fit. */
function listed(open: string, unit: (i: number) => string, close: string): string {
  const parts: string[] = []
  for (let [i, size] = [0, open.length + close.length]; size + unit(i).length < LIMIT; i++) {
    parts.push(unit(i))
    size += unit(i).length + 1
  }
  return open + parts.join() + close
}

/** Bodies that are not valid JSON, or valid JSON of extreme size, depth or content (D2.1, D2.2, D2.4). */
export const bodies: readonly Case[] = [
  ['an empty body where fields are required', run(''), 400],
  ['an empty body where no field is required', create(''), 201],
  ['blanks', create('   \n\t '), 400],
  ['null', run('null'), 400],
  ['a number', run('1'), 400],
  ['a text', run('"prompt"'), 400],
  ['a list', run('[]'), 400],
  ['a list of objects', run('[{"prompt":"x"}]'), 400],
  ['a truncated object', run('{"prompt":"x"'), 400],
  ['two objects', run('{"prompt":"x"}{"prompt":"y"}'), 400],
  ['a trailing comma', run('{"prompt":"x",}'), 400],
  ['a missing comma', run('{"prompt":"x" "model":"y"}'), 400],
  ['single quotes', run("{'prompt':'x'}"), 400],
  ['a comment', run('{"prompt":"x"/* y */}'), 400],
  ['a key without quotes', run('{prompt:"x"}'), 400],
  ['NaN', run('{"prompt":"x","max_turns":NaN}'), 400],
  ['Infinity', run('{"prompt":"x","max_turns":-Infinity}'), 400],
  ['a number in hex', run('{"prompt":"x","max_turns":0x10}'), 400],
  ['a number with a leading zero', run('{"prompt":"x","max_turns":010}'), 400],
  ['a line break within a text', run('{"prompt":"a\nb"}'), 400],
  ['a NUL within a text', run('{"prompt":"a\0b"}'), 400],
  ['an invalid escape', run('{"prompt":"\\x41"}'), 400],
  ['a truncated escape', run('{"prompt":"\\u00"}'), 400],
  ['a lone surrogate', run('{"prompt":"\\ud83d"}'), 400],
  ['a reversed surrogate pair', run('{"prompt":"\\ude00\\ud83d"}'), 400],
  ['a byte that is not UTF-8', run(bytes(0xff)), 400],
  ['a truncated character', run(bytes(0xf0, 0x9f, 0x98)), 400],
  ['an overlong UTF-8 encoding', run(bytes(0xc0, 0xaf)), 400],
  ['a surrogate as UTF-8', run(bytes(0xed, 0xa0, 0x80)), 400],
  ['a character beyond Unicode', run(bytes(0xf4, 0x90, 0x80, 0x80)), 400],
  ['UTF-16', run(Buffer.from('{"prompt":"x"}', 'utf16le')), 400],
  ['gzip without a Content-Encoding', run(gzipSync('{"prompt":"x"}')), 400],
  ['a form', run('prompt=x'), 400],
  ['XML with an entity', run('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'), 400],
  ['a byte order mark', create('\ufeff{}'), 201],
  ['a key __proto__', create('{"__proto__":{"session_id":"x"}}'), 400],
  ['the key __proto__ in escapes', create('{"\\u005f_proto__":1}'), 400],
  ['the key __proto__ in a nested object', create('{"a":[{"b":{"__proto__":null}}]}'), 400],
  ['the key __proto__ followed by blanks', create('{"__proto__" \n\t :1}'), 400],
  ['__proto__ as a value', create('{"a":"__proto__"}'), 201],
  ['constructor and prototype', create('{"constructor":{"prototype":{"session_id":"../x"}}}'), 201],
  [
    'other names of Object.prototype',
    create('{"toString":1,"hasOwnProperty":null,"valueOf":{},"__defineGetter__":1}'),
    201,
  ],
  ['database operators as keys', create('{"$where":"sleep(1e9)","$gt":"","$ne":null}'), 201],
  ['a key twice', post(RUN, '{"prompt":"x","prompt":""}'), 400],
  ['64 levels', create(`{"a":${'['.repeat(63)}${']'.repeat(63)}}`), 201],
  ['65 levels', create(`{"a":${'['.repeat(64)}${']'.repeat(64)}}`), 400],
  ['a hundred thousand levels', run('['.repeat(100_000)), 400],
  ['brackets in a text', create(`{"a":"${'['.repeat(1_000)}"}`), 201],
  ['a key of 100,000 characters', create(`{"${'k'.repeat(100_000)}":1}`), 201],
  ['a number of 100,000 digits', create(`{"a":${'9'.repeat(100_000)}}`), 201],
  ['a fraction of 100,000 digits', create(`{"a":0.${'1'.repeat(100_000)}e-99999}`), 201],
  ['20,000 keys', create(`{${Array.from({ length: 20_000 }, (_, i) => `"${i}":0`).join(',')}}`), 201],
  ['100,000 backslashes', run(`{"prompt":"${'\\'.repeat(100_000)}`), 400],
  ['10 MB of brackets', run(filled('', '[', '')), 400],
  [
    '10 MB of brackets, 60 deep, in an unknown field',
    create(filled('{"a":[', `${'['.repeat(60)}${']'.repeat(60)},`, '0]}')),
    201,
  ],
  ['10 MB of objects of different shapes', create(listed('{"a":[', (i) => `{"${i.toString(36)}":0}`, ']}')), 201],
  ['two million stop_sequences', post(RUN, filled('{"prompt":"x","stop_sequences":[', '"a",', '"b"]}')), 400],
  ['a million tools, which are ignored', post(RUN, filled('{"prompt":"x","tools":[', '{"a":1},', '{}]}')), 200],
  ['a prompt of 10 MB', post(RUN, `{"prompt":"${'😀'.repeat(LIMIT / 4 - 8)}"}`), 400],
  [
    '10 MB of an object as customer_id',
    post(
      RUN,
      listed('{"prompt":"x","customer_id":{', (i) => `"k${i}":{}`, '}}'),
    ),
    400,
  ],
  ['10 MB of an unfinished text', run(filled('{"prompt":"', 'a', '')), 400],
  ['10 MB that are not UTF-8', run(Buffer.alloc(LIMIT, 0xff)), 400],
  ['10 MB of objects', run(filled('[', '{},', '0]')), 400],
  ['10 MB of keys', run(filled('{', '"a":{},', '"b":0}')), 400],
  ['10 MB of escapes', run(filled('{"model":"', '\\u0061', '"}')), 400],
  ['10 MB of quotes', run(filled('', '"', '')), 400],
  ['10 MB of escaped quotes', run(filled('{"prompt":"', '\\"', '"}')), 400],
  ['10 MB of blanks', run(filled('{"prompt":', ' ', '""}')), 400],
  ['10 MB of digits', run(filled('{"max_turns":', '1', '}')), 400],
  ['10 MB of zeroes', run(Buffer.alloc(LIMIT)), 400],
  ['10 MB exactly', create(filled('{"a":"', 'a', '"}')), 201],
  ['one byte more than 10 MB', create(`${filled('{"a":"', 'a', '"}')} `), 413],
]
