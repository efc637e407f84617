// Idempotent functions of the real Powertools for TypeScript; see `app.py`. It runs where Powertools is installed.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.cwd(), 'index.js'));
const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
const { BatchProcessor, EventType, processPartialResponse } = require('@aws-lambda-powertools/batch');
const idempotency = require('@aws-lambda-powertools/idempotency');
const { DynamoDBPersistenceLayer } = require('@aws-lambda-powertools/idempotency/dynamodb');
const { IdempotencyConfig, makeIdempotent } = idempotency;

console.warn = () => {};
console.debug = () => {};
const client = new DynamoDBClient({
  endpoint: process.env.ENDPOINT,
  region: 'eu-west-1',
  credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
});
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (answer) => console.log(JSON.stringify(answer));

const outcome = async (call) => {
  const event = JSON.parse(call.event);
  const context = { getRemainingTimeInMillis: () => call.remaining };
  const config = new IdempotencyConfig({
    eventKeyJmesPath: call.key,
    payloadValidationJmesPath: call.validation,
    hashFunction: call.hash,
    expiresAfterSeconds: call.expires,
    lambdaContext: context,
  });
  const persistenceStore = new DynamoDBPersistenceLayer({
    tableName: call.table,
    sortKeyAttr: call.sort_key,
    awsSdkV3Client: client,
  });
  const settings = { persistenceStore, config, keyPrefix: call.prefix };
  let executed = 0;
  const work = async () => {
    executed += 1;
    if (call.holds) {
      say({ holds: true });
      await lines.next();
    }
    if (call.fails) throw new Error('the work failed');
    return JSON.parse(call.result);
  };
  let answer;
  try {
    let result;
    if (call.form === 'function') {
      result = await makeIdempotent(async (_order) => work(), settings)(event);
    } else if (call.form === 'handler') {
      result = await makeIdempotent(async (_event, _context) => work(), settings)(event, context);
    } else if (call.form === 'method') {
      const method = { value: async (_order) => work() };
      result = await idempotency.idempotent(settings)(null, 'process', method).value(event);
    } else {
      const recordHandler = makeIdempotent(async (_record) => work(), settings);
      const batch = new BatchProcessor(EventType.SQS);
      const options = { context, throwOnFullBatchFailure: false };
      result = await processPartialResponse(event, recordHandler, batch, options);
    }
    answer = { result };
  } catch (error) {
    answer = { error: error.name };
  }
  return { executed, ...answer };
};

for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const call = JSON.parse(line.value);
  say(await outcome(call));
}
