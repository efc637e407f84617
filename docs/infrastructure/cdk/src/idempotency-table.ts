import { RemovalPolicy } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';

/** The table of the idempotency records. */
export class IdempotencyTable extends dynamodb.Table {
  constructor(scope: Construct, id: string) {
    super(scope, id, {
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      partitionKey: { name: 'id', type: dynamodb.AttributeType.STRING },
      // With another name the table only grows.
      timeToLiveAttribute: 'expiration',
      encryption: dynamodb.TableEncryption.AWS_MANAGED,
      // A new, empty table does not know what was done.
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
  }

  /**
   * Lets the function keep its records here, and tells it the table's name.
   *
   * `application` owns the records. The function's name, which is the default, changes when CloudFormation replaces
   * the function.
   *
   * `grantReadWriteData` is not enough: it has none of the PartiQL permissions, which `PutItem` does not include.
   */
  keepRecordsOf(fn: lambda.Function, application: string): void {
    fn.addToRolePolicy(
      new iam.PolicyStatement({
        sid: 'Idempotency',
        actions: [
          'dynamodb:GetItem',
          'dynamodb:BatchGetItem',
          'dynamodb:PutItem',
          'dynamodb:UpdateItem',
          'dynamodb:DeleteItem',
          'dynamodb:PartiQLInsert',
          'dynamodb:PartiQLUpdate',
          'dynamodb:PartiQLDelete',
        ],
        resources: [this.tableArn],
      }),
    );
    fn.addEnvironment('IDEMPOTENCY_TABLE', this.tableName);
    fn.addEnvironment('IDEMPOTENCY_APPLICATION', application);
  }
}
