"""A simulated AWS: moto's server on a free port, with the few mends that the real provider needs, and an account that somebody has prepared.

The first line on standard output is JSON: where it answers, and what the account has. It ends when its standard input does, so that it never
outlives the test that started it, however that ends. What the test asks beside AWS's own API:

  GET /_test/left   what there is in every region that was worked in, apart from what each new account has
  GET /_test/left/ACCOUNT  the same of another account, as a role in it sees it; the first question takes what there is as what it began with
  GET /_test/keys   how often each access key was used, by service
  GET /_test/secrets  the secret keys and the session tokens that AWS has given: those of machines' roles, and those of sessions
  GET /_test/made   how often each call has made something
  GET /_test/strangers  makes what others have in the same account: of another fleet, and of nobody knows whom
  GET /_test/machines   the instances, with what each finds when it boots: it fetches its user data once, as a real one would
  GET /_test/end/ID     ends an instance behind everybody's back
  GET /_test/interrupt/ID,ID  takes spot instances back, all at once, as AWS does when it needs the capacity itself
"""

import base64
import gzip
import io
import json
import os
import random
import re
import secrets
import socket
import sys
import threading
from collections import Counter
from urllib.parse import parse_qs, urlparse

os.environ.setdefault("AWS_ACCESS_KEY_ID", "testing")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "testing")
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "true")

try:
    import boto3
    from botocore.exceptions import ClientError
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.ec2.models import ec2_backends
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
    from moto.ec2.models.instances import Instance, StateReason
    from moto.ec2.models.nat_gateways import NatGatewayBackend
    from moto.ec2.models.security_groups import SecurityGroupRule
    from moto.elbv2.exceptions import TargetGroupNotFoundError
    from moto.elbv2.models import ELBv2Backend, FakeLoadBalancer
    from moto.instance_metadata.responses import InstanceMetadataResponse
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server
except ImportError as e:
    sys.exit(f"the simulated AWS is missing: {e}: scripts/moto.sh installs it, and prints which Python has it")

REGION = sys.argv[1] if len(sys.argv) > 1 else "eu-central-1"
PROFILES = [
    f"{role}.cluster-api-provider-aws.sigs.k8s.io"
    for role in ("control-plane", "nodes", "controllers")
]


def mend():
    """What moto does and AWS does not."""
    rule = SecurityGroupRule.__init__

    def rule_of_any_protocol(self, backend, protocol, group, from_port, to_port, *args, **kwargs):
        # Protocols such as IP-in-IP have no ports.
        rule(self, backend, protocol, group, -1 if from_port is None else from_port, -1 if to_port is None else to_port, *args, **kwargs)

    SecurityGroupRule.__init__ = rule_of_any_protocol
    groups = ELBv2Backend.describe_target_groups

    def groups_of_any_load_balancer(self, load_balancer_arn, target_group_arns, names):
        # A load balancer without any has an empty list of them.
        try:
            return groups(self, load_balancer_arn, target_group_arns, names)
        except TargetGroupNotFoundError:
            if load_balancer_arn:
                return []
            raise

    ELBv2Backend.describe_target_groups = groups_of_any_load_balancer
    metadata = InstanceMetadataResponse.metadata_response

    def metadata_with_code(request, full_url, headers):
        # AWS's SDK takes credentials of a machine's role only with the code that AWS puts beside them.
        status, sent, body = metadata(request, full_url, headers)
        if urlparse(full_url).path.endswith("/security-credentials/default-role"):
            body = json.dumps({**json.loads(body), "Code": "Success", "Type": "AWS-HMAC", "SecretAccessKey": ROLE[0], "Token": ROLE[1]})
        return status, sent, body

    InstanceMetadataResponse.metadata_response = staticmethod(metadata_with_code)
    # The network interface of an instance goes with it, and that of a NAT gateway.
    end = Instance.terminate

    def end_with_interfaces(self):
        for nic in self.nics.values():
            nic.delete_on_termination = True
        return end(self)

    Instance.terminate = end_with_interfaces
    close = NatGatewayBackend.delete_nat_gateway

    def close_with_interface(self, nat_gateway_id):
        gateway = close(self, nat_gateway_id)
        self.enis.pop(gateway._eni.id, None)
        return gateway

    NatGatewayBackend.delete_nat_gateway = close_with_interface
    # An account has the regions that somebody has enabled; moto tells of all, and serves not all of them.
    regions = RegionsAndZonesBackend.describe_regions

    def enabled_regions(self, *args, **kwargs):
        return [r for r in regions(self, *args, **kwargs) if r.name in (REGION, "eu-west-1", "us-east-1")]

    RegionsAndZonesBackend.describe_regions = enabled_regions
    # The name of a load balancer has to resolve: each gets an address of this machine's loopback network.
    balancer = FakeLoadBalancer.__init__

    def balancer_on_loopback(self, *args, **kwargs):
        balancer(self, *args, **kwargs)
        self.dns_name = next(ADDRESSES)

    FakeLoadBalancer.__init__ = balancer_on_loopback


def network():
    """254 addresses of the loopback network that no other simulator on this machine uses, and what holds them until the end."""
    while True:
        prefix = f"127.{random.randint(64, 126)}.{random.randint(0, 255)}"
        held = socket.socket()
        try:
            held.bind((f"{prefix}.254", 6443))
        except OSError:
            held.close()
            continue
        return held, (f"{prefix}.{n}" for n in range(1, 254))


HELD, ADDRESSES = network()
# What machines' roles have: moto gives each the same words, which could stand anywhere.
ROLE = secrets.token_urlsafe(30), secrets.token_urlsafe(90)


def prepare(url):
    """The account as the provider's documentation has it prepared."""
    ec2 = client("ec2", url)
    ec2.create_key_pair(KeyName="default")
    iam = client("iam", url)
    for name in PROFILES:
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    image = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"][0]["ImageId"]
    # Machines that boot from this one have the next version of Kubernetes.
    newer = ec2.register_image(Name="node-of-the-next-version", Architecture="x86_64", RootDeviceName="/dev/sda1")["ImageId"]
    return image, newer


def client(service, url, region=REGION, session=None):
    return boto3.client(service, region_name=region, endpoint_url=url, **(session or {}))


def session_in(url, account):
    """The keys of a session of a role in another account."""
    role = f"arn:aws:iam::{account}:role/test"
    keys = client("sts", url).assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    return {
        "aws_access_key_id": keys["AccessKeyId"],
        "aws_secret_access_key": keys["SecretAccessKey"],
        "aws_session_token": keys["SessionToken"],
    }


def left(url, region, session=None):
    """Everything in a region, as KIND/ID."""
    ec2 = client("ec2", url, region, session)
    out = []

    def add(kind, ids):
        out.extend(f"{kind}/{i}" for i in ids)

    add("vpc", [v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"]])
    add("subnet", [s["SubnetId"] for s in ec2.describe_subnets()["Subnets"]])
    add("internet-gateway", [g["InternetGatewayId"] for g in ec2.describe_internet_gateways()["InternetGateways"]])
    add("nat-gateway", [g["NatGatewayId"] for g in ec2.describe_nat_gateways()["NatGateways"] if g["State"] != "deleted"])
    add("address", [a["AllocationId"] for a in ec2.describe_addresses()["Addresses"]])
    add("route-table", [t["RouteTableId"] for t in ec2.describe_route_tables()["RouteTables"]])
    add("security-group", [g["GroupId"] for g in ec2.describe_security_groups()["SecurityGroups"]])
    add("volume", [v["VolumeId"] for v in ec2.describe_volumes()["Volumes"]])
    add("network-interface", [n["NetworkInterfaceId"] for n in ec2.describe_network_interfaces()["NetworkInterfaces"]])
    add("endpoint", [e["VpcEndpointId"] for e in ec2.describe_vpc_endpoints()["VpcEndpoints"]])
    for reservation in ec2.describe_instances()["Reservations"]:
        add("instance", [i["InstanceId"] for i in reservation["Instances"] if i["State"]["Name"] != "terminated"])
    elb = client("elbv2", url, region, session)
    add("load-balancer", [b["LoadBalancerArn"] for b in elb.describe_load_balancers()["LoadBalancers"]])
    add("target-group", [g["TargetGroupArn"] for g in elb.describe_target_groups()["TargetGroups"]])
    classic = client("elb", url, region, session)
    add("classic-load-balancer", [b["LoadBalancerName"] for b in classic.describe_load_balancers()["LoadBalancerDescriptions"]])
    add("secret", [s["ARN"] for s in client("secretsmanager", url, region, session).list_secrets()["SecretList"]])
    return out


class Machines:
    """What instances are to those who look at them from inside."""

    def __init__(self, url):
        self.ec2 = client("ec2", url)
        self.secrets = client("secretsmanager", url)
        self.started = {}

    def all(self):
        out = []
        for reservation in self.ec2.describe_instances()["Reservations"]:
            for instance in reservation["Instances"]:
                out.append(self.one(instance))
        return out

    def one(self, instance):
        name, running = instance["InstanceId"], instance["State"]["Name"] == "running"
        if running and name not in self.started:
            try:
                data = self.user_data(name)
                self.started[name] = {"address": next(ADDRESSES), "userData": data}
            except ClientError:
                running = False  # not yet: a real one tries again, too
        zone = instance["Placement"]["AvailabilityZone"]
        return {
            "id": name,
            "providerID": f"aws:///{zone}/{name}",
            "hostname": instance["PrivateDnsName"],
            "type": instance["InstanceType"],
            "image": instance["ImageId"],
            "zone": zone,
            "spot": instance.get("InstanceLifecycle") == "spot",
            "running": running,
            **self.started.get(name, {}),
        }

    def user_data(self, name):
        """Follows the script that the provider gives each instance: its data are in several secrets, which are deleted once they are read."""
        value = self.ec2.describe_instance_attribute(InstanceId=name, Attribute="userData")["UserData"].get("Value", "")
        script = plain(base64.b64decode(value)).decode()
        prefix, chunks = re.search(r'SECRET_PREFIX="([^"]+)"', script), re.search(r"CHUNKS=\"(\d+)\"", script)
        if not prefix or not chunks:
            return script
        names = [f"{prefix[1]}-{n}" for n in range(int(chunks[1]))]
        data = b"".join(self.secrets.get_secret_value(SecretId=n)["SecretBinary"] for n in names)
        for n in names:
            self.secrets.delete_secret(SecretId=n, ForceDeleteWithoutRecovery=True)
        return plain(data).decode()


def interrupt(ids):
    """Takes spot instances back. moto has no call for it; what AWS tells of such an instance differs from that of one that a user ends."""
    instances = [ec2_backends[DEFAULT_ACCOUNT_ID][REGION].get_instance(i) for i in ids]
    if any(i.lifecycle != "spot" for i in instances):
        raise ValueError(f"one of {ids} is no spot instance, and AWS takes no other one back")
    for instance in instances:
        instance.terminate()
        instance._reason = "Server.SpotInstanceTermination"
        instance.state_reason = StateReason("Server.SpotInstanceTermination: Spot instance termination", "Server.SpotInstanceTermination")
    return True


def plain(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def strangers(url):
    """A VPC with a subnet of another fleet's cluster, and a VPC of a cluster whose fleet nothing tells."""
    ec2 = client("ec2", url)

    def tags(cluster, fleet=None):
        all_of_it = [{"Key": f"sigs.k8s.io/cluster-api-provider-aws/cluster/{cluster}", "Value": "owned"}]
        return all_of_it + ([{"Key": "fleetctl.dev/fleet", "Value": fleet}] if fleet else [])

    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=tags("stranger", "11111111-2222-3333-4444-555555555555"))
    # Cluster of the same name as ours, in a network of theirs; the tags name no fleet.
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.1.0/24")["Subnet"]["SubnetId"]
    ec2.create_tags(Resources=[subnet], Tags=tags("shop"))
    unknown = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[unknown], Tags=tags("unknown"))
    return True


class Quiet(WSGIRequestHandler):
    def log_request(self, code="-", size="-"):
        if isinstance(code, int) and code >= 400:
            super().log_request(code, size)


# The calls after which there is something that was not there before. Tags are part of what they are on.
MAKES = re.compile("(Create(?!Tags)|Run|Allocate|Import)")


def called(environ):
    """The name of a call, in either of the two ways in which AWS is told it. A body that was read can be read again."""
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target or environ["REQUEST_METHOD"] != "POST":
        return target.rpartition(".")[2]
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return parse_qs(body.decode("utf-8", "replace")).get("Action", [""])[0]


class Account:
    """moto's application, with what the test asks beside it."""

    def __init__(self):
        self.aws = DomainDispatcherApplication(create_backend_app)
        self.url = ""
        self.machines = None
        self.keys = Counter()
        self.calls = Counter()
        self.given = set(ROLE)
        self.fresh = {}
        self.others = {}

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"].startswith("/_test/"):
            body = json.dumps(self.answer(environ["PATH_INFO"])).encode()
            start_response("200 OK", [("Content-Type", "application/json")])
            return [body]
        used = re.search(r"Credential=([^/]+)/\d+/([^/]+)/([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        if used:
            self.keys[f"{used[1]} {used[3]}"] += 1
        call = called(environ)
        if call.startswith("AssumeRole"):
            body = b"".join(self.aws(environ, start_response))
            self.given.update(s.decode() for s in re.findall(rb"<(?:SecretAccessKey|SessionToken)>([^<]+)<", body))
            return [body]
        if not MAKES.match(call):
            return self.aws(environ, start_response)

        def start(status, *args):
            if status.startswith("200"):
                self.calls[call] += 1
            return start_response(status, *args)

        return self.aws(environ, start)

    def answer(self, path):
        if path == "/_test/keys":
            return dict(self.keys)
        if path == "/_test/secrets":
            return sorted(self.given)
        if path == "/_test/made":
            return dict(self.calls)
        if path == "/_test/strangers":
            return strangers(self.url)
        if path == "/_test/machines":
            return self.machines.all()
        if path.startswith("/_test/end/"):
            self.machines.ec2.terminate_instances(InstanceIds=[path.removeprefix("/_test/end/")])
            return True
        if path.startswith("/_test/interrupt/"):
            return interrupt(path.removeprefix("/_test/interrupt/").split(","))
        if path.startswith("/_test/left/"):
            return self.left_in(path.removeprefix("/_test/left/"))
        return sorted(set(left(self.url, REGION)) - self.fresh)

    def left_in(self, account):
        session, fresh = self.others.get(account) or (session_in(self.url, account), None)
        there = set(left(self.url, REGION, session))
        self.others[account] = session, there if fresh is None else fresh
        return sorted(there - self.others[account][1])


def main():
    mend()
    account = Account()
    server = make_server("127.0.0.1", 0, account, threaded=True, request_handler=Quiet)
    account.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    account.machines = Machines(account.url)
    image, newer = prepare(account.url)
    account.fresh = set(left(account.url, REGION))
    account.keys.clear()
    account.calls.clear()
    print(json.dumps({"url": account.url, "region": REGION, "image": image, "newerImage": newer}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
